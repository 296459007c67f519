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

// picturesVariable is the directory in which `make pictures` stores the pictures.
const picturesVariable = "PICTURES"

// largestPicture limits the size of a picture in bytes, because it is part of the repository.
const largestPicture = 200_000

// printed is the size of the pictures.
var printed = look{1100, 720, "light", true}

func TestJUnit_ViewerPictures(t *testing.T) {
	folder := picturesFolder(t)
	r := reporttest.Sample()
	r.Clusters = plain(r, reporttest.Fleet(20, 1)).Clusters
	for name, v := range viewers {
		t.Run(name, func(t *testing.T) {
			p := newTab(t, printed)
			p.before(everythingIsInView)
			p.goTo("file://" + v.page(t, name, r))
			failed := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((test) => test.textContent.includes('outlives every blocking'))`, v.tests)
			p.is(failed + ` !== undefined`)
			p.value(failed + `.scrollIntoView(); window.scrollBy(0, -200)`)
			p.keep(filepath.Join(folder, "junit", name+".png"))
		})
	}
}

func TestPage_Picture(t *testing.T) {
	folder := picturesFolder(t)
	p := open(t, reporttest.Fleet(120, 3), printed)
	p.is(ready)
	p.keep(filepath.Join(folder, "pictures", "report.png"))
}

// picturesFolder returns the directory for pictures; without one the test is skipped.
func picturesFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv(picturesVariable)
	if folder == "" {
		t.Skip("`make pictures` takes the pictures")
	}
	return folder
}

// keep takes a picture of the tab and writes it to a file.
func (p *tab) keep(name string) {
	g := NewWithT(p)
	content, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	g.Expect(err).NotTo(HaveOccurred())
	picture, err := png.DecodeConfig(bytes.NewReader(content))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int64{int64(picture.Width), int64(picture.Height)}).To(Equal([]int64{printed.width, printed.height}))
	g.Expect(len(content)).To(BeNumerically("<", largestPicture))
	g.Expect(os.MkdirAll(filepath.Dir(name), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(name, content, 0o644)).To(Succeed())
}
