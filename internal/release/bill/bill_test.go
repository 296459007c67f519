package bill

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	. "github.com/onsi/gomega"
)

func TestWrite(t *testing.T) {
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
