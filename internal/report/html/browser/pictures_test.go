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

// picturesVariable names the folder that pictures of viewers are kept in; `make junit-pictures` keeps those of docs/junit.md.
const picturesVariable = "JUNIT_PICTURES"

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
			g := NewWithT(t)
			p := newTab(t, browser, printed)
			p.before(everythingIsInView)
			p.goTo("file://" + v.page(t, name, r))
			failed := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((test) => test.textContent.includes('outlives every blocking'))`, v.tests)
			p.is(failed + ` !== undefined`)
			p.value(failed + `.scrollIntoView(); window.scrollBy(0, -200)`)
			content, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			g.Expect(err).NotTo(HaveOccurred())
			picture, err := png.DecodeConfig(bytes.NewReader(content))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]int64{int64(picture.Width), int64(picture.Height)}).To(Equal([]int64{printed.width, printed.height}))
			g.Expect(len(content)).To(BeNumerically("<", largestPicture))
			if folder := os.Getenv(picturesVariable); folder != "" {
				g.Expect(os.WriteFile(filepath.Join(folder, name+".png"), content, 0o644)).To(Succeed())
			}
		})
	}
}
