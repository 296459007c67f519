package suites

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSuites_Linked(t *testing.T) {
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "suites.go", nil, parser.ImportsOnly)
	g.Expect(err).NotTo(HaveOccurred())
	var linked []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		g.Expect(err).NotTo(HaveOccurred())
		linked = append(linked, path.Base(imported))
	}
	entries, err := os.ReadDir(".")
	g.Expect(err).NotTo(HaveOccurred())
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, entry.Name())
		}
	}
	g.Expect(linked).To(Equal(dirs), "suites.go imports every folder beside it")
}
