package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deletion-conformance/deletion-conformance/internal/release/bill"
)

// schema returns the schema that CycloneDX publishes, from its Go module.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "schema", "*.schema*.json"))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(file)
		_ = file.Close()
		if err == nil {
			name = strings.Replace(filepath.Base(name), ".schemax.", ".schema.", 1) // the name in references of the others
			err = compiler.AddResource("http://cyclonedx.org/schema/"+name, document)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	compiled, err := compiler.Compile("http://cyclonedx.org/schema/bom-" + bill.Form.String() + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestBill_EveryModule(t *testing.T) {
	g := NewWithT(t)
	self, known := debug.ReadBuildInfo()
	g.Expect(known).To(BeTrue())

	var out bytes.Buffer
	executable, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bill.Write(&out, executable, "v1.2.3")).To(Succeed())

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.Bytes()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(schema(t).Validate(document)).To(Succeed())
	for _, module := range self.Deps {
		g.Expect(out.String()).To(ContainSubstring(`"pkg:golang/` + module.Path + `@` + module.Version))
	}
	g.Expect(self.Deps).NotTo(BeEmpty())
}
