package kubectl

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestOnlyFoldersThatWereLeftAreSwept(t *testing.T) {
	g := NewWithT(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	used, err := makeFolder("dcinuse")
	g.Expect(err).NotTo(HaveOccurred())
	killed, err := makeFolder("dckilled")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(killed.path, "kubeconfig-1"), nil, 0o600)).To(Succeed())
	g.Expect(killed.lock.Close()).To(Succeed()) // as the kernel does
	elsewhere := t.TempDir()
	for _, name := range []string{"deletion-conformance-local-1", "deletion-conformance-dcyoung-1" + unlocked} {
		g.Expect(os.Mkdir(filepath.Join(temporary, name), 0o700)).To(Succeed())
	}
	g.Expect(os.Symlink(elsewhere, filepath.Join(temporary, "deletion-conformance-dclink-1"))).To(Succeed())

	swept, err := SweepFolders()

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(swept).To(Equal([]string{killed.path}))
	g.Expect(killed.path).NotTo(BeAnExistingFile())
	g.Expect(used.path).To(BeADirectory())
	g.Expect(elsewhere).To(BeADirectory())
	g.Expect(os.ReadDir(temporary)).To(HaveLen(4), "all others")

	used.remove()
	g.Expect(used.path).NotTo(BeAnExistingFile())
}
