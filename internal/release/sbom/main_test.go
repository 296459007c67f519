package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"
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
	compiled, err := compiler.Compile("http://cyclonedx.org/schema/bom-" + form.String() + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestABillHoldsEveryModuleOfThisTest(t *testing.T) {
	g := NewWithT(t)
	self, known := debug.ReadBuildInfo()
	g.Expect(known).To(BeTrue())

	var out bytes.Buffer
	g.Expect(write(&out, self, "v1.2.3")).To(Succeed())

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.Bytes()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(schema(t).Validate(document)).To(Succeed())
	for _, module := range self.Deps {
		g.Expect(out.String()).To(ContainSubstring(`"pkg:golang/` + module.Path + `@` + module.Version))
	}
	g.Expect(self.Deps).NotTo(BeEmpty())
}

func TestABillSaysWhatTheLinkerNoted(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(write(&out, &debug.BuildInfo{
		GoVersion: "go1.26.0", Path: "example.com/runner/cmd/runner", Main: debug.Module{Path: "example.com/runner", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/old", Version: "v2.0.0+incompatible", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
			{Path: "example.com/replaced", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "-s"}},
	}, "v1.2.3")).To(Succeed())

	bill := cyclonedx.BOM{}
	g.Expect(cyclonedx.NewBOMDecoder(&out, cyclonedx.BOMFileFormatJSON).Decode(&bill)).To(Succeed())
	binary := bill.Metadata.Component
	g.Expect([]string{binary.Name, binary.Version, binary.PackageURL}).To(Equal([]string{"runner", "v1.2.3", "pkg:golang/example.com/runner@v1.2.3"}))
	g.Expect(*binary.Properties).To(Equal([]cyclonedx.Property{{Name: "go:build:GOOS", Value: "linux"}}))
	g.Expect(*(*bill.Dependencies)[0].Dependencies).To(Equal([]string{
		"pkg:golang/std@1.26.0", "pkg:golang/example.com/old@v2.0.0%2Bincompatible", "pkg:golang/example.com/fork@v1.0.1",
	}))
	g.Expect(*(*bill.Components)[1].Hashes).To(Equal([]cyclonedx.Hash{
		{Algorithm: cyclonedx.HashAlgoSHA256, Value: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
	}))
}
