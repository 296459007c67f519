package browser

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// picturesVariable names the folder of documents in which `make pictures` keeps the pictures.
const picturesVariable = "PICTURES"

// largestPicture is how many bytes a picture may have, since it goes into the repository.
const largestPicture = 200_000

// printed is how large pictures are.
var printed = look{1100, 720, "light", true}

func TestPicturesOfViewers(t *testing.T) {
	browser := newBrowser(t)
	r := reporttest.Sample()
	r.Clusters = plain(r, reporttest.Fleet(20, 1)).Clusters
	for name, v := range viewers {
		t.Run(name, func(t *testing.T) {
			p := newTab(t, browser, printed)
			p.before(everythingIsInView)
			p.goTo("file://" + v.page(t, name, r))
			failed := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((test) => test.textContent.includes('outlives every blocking'))`, v.tests)
			p.is(failed + ` !== undefined`)
			p.value(failed + `.scrollIntoView(); window.scrollBy(0, -200)`)
			p.keep(filepath.Join("junit", name+".png"))
		})
	}
}

func TestPictureOfThePage(t *testing.T) {
	p := open(t, newBrowser(t), reporttest.Fleet(120, 3), printed)
	p.is(ready)
	p.keep(filepath.Join("pictures", "report.png"))
}

// keep takes a picture of what the tab shows, and writes it to a file below the folder of documents, if that is named.
func (p *tab) keep(name string) {
	g := NewWithT(p)
	content, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	g.Expect(err).NotTo(HaveOccurred())
	picture, err := png.DecodeConfig(bytes.NewReader(content))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int64{int64(picture.Width), int64(picture.Height)}).To(Equal([]int64{printed.width, printed.height}))
	g.Expect(len(content)).To(BeNumerically("<", largestPicture))
	if folder := os.Getenv(picturesVariable); folder != "" {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, name), content, 0o644)).To(Succeed())
	}
}
