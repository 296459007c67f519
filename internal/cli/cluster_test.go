package cli

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// The current directory may be another user's: what is there must not be built and executed.
func TestClusterBuild_CurrentDirectory(t *testing.T) {
	g := NewWithT(t)
	clone, bin := t.TempDir(), t.TempDir()
	theirs := filepath.Join(clone, "kubernetes")
	g.Expect(os.Mkdir(theirs, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(theirs, "go.mod"), []byte("module example.com/theirs\n\nrequire k8s.io/kubernetes v1.37.2\n"), 0o600)).To(Succeed())
	used := filepath.Join(bin, "used")
	g.Expect(os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\necho \"$PWD $*\" >> '"+used+"'\nexit 1\n"), 0o700)).To(Succeed())
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Chdir(clone)

	_, _, failed := ended(t, "cluster", "build")

	g.Expect(used).To(BeARegularFile(), failed)
	g.Expect(os.ReadFile(used)).NotTo(ContainSubstring(clone))

	_, _, failed = ended(t, "cluster", "build", "--module", "kubernetes")

	g.Expect(failed).To(ContainSubstring(theirs))
}
