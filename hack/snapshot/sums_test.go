package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// summed returns a release whose files contain their own names, with their checksums.
func summed(t *testing.T) (made release, sums string) {
	t.Helper()
	made = release{dir: t.TempDir(), Version: "1.2.3"}
	for _, platform := range platforms {
		for _, name := range []string{made.archive(platform), made.bill(platform)} {
			if err := os.WriteFile(filepath.Join(made.dir, name), []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
			sums += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(name)), name)
		}
	}
	return made, sums
}

func TestCheckSums(t *testing.T) {
	for _, test := range []struct {
		name    string
		spoil   func(sums string) string
		problem string
	}{
		{"as they should be", func(sums string) string { return sums }, ""},
		{"of another file", func(sums string) string { return strings.Replace(sums, sums[:4], "0000", 1) }, "the sum of deletion-conformance_1.2.3_linux_amd64.tar.gz is"},
		{"one missing", func(sums string) string { return sums[strings.Index(sums, "\n")+1:] }, "checksums.txt lists"},
		{"of what is not there", func(sums string) string { return sums + "0000  other.zip\n" }, "other.zip: no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			made, sums := summed(t)
			g.Expect(os.WriteFile(filepath.Join(made.dir, "checksums.txt"), []byte(test.spoil(sums)), 0o600)).To(Succeed())
			if test.problem == "" {
				g.Expect(made.checkSums()).To(Succeed())
			} else {
				g.Expect(made.checkSums()).To(MatchError(ContainSubstring(test.problem)))
			}
		})
	}
}
