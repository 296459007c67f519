// Package bill writes software bills of materials of Go binaries in CycloneDX format: the modules that the Go linker has recorded, with
// versions and checksums, and Go's standard library.
package bill

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// Form is the version of the CycloneDX specification; more programs support it than the newest.
const Form = cyclonedx.SpecVersion1_6

// Write writes the bill of materials of a binary, whose release has the version. It fails when the file is no Go binary.
func Write(out io.Writer, binary, version string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read what %s is built from: %w", binary, err)
	}
	return write(out, info, version)
}

// write writes the bill of materials of a released binary.
func write(out io.Writer, info *debug.BuildInfo, version string) error {
	bill := cyclonedx.NewBOM()
	binary, err := component(debug.Module{Path: info.Main.Path, Version: version})
	if err != nil {
		return err
	}
	binary.Type, binary.Name = cyclonedx.ComponentTypeApplication, path.Base(info.Path)
	binary.Properties = properties(info.Settings)
	bill.Metadata = &cyclonedx.Metadata{Component: &binary}
	components, err := libraries(info)
	if err != nil {
		return err
	}
	bill.Components = &components
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: binary.BOMRef, Dependencies: references(components)}}
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bill, Form)
}

// libraries returns the standard library and the modules, after replacements.
func libraries(info *debug.BuildInfo) ([]cyclonedx.Component, error) {
	modules := []debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, module := range info.Deps {
		for module.Replace != nil {
			module = module.Replace
		}
		modules = append(modules, *module)
	}
	var components []cyclonedx.Component
	for _, module := range modules {
		component, err := component(module)
		if err != nil {
			return nil, err
		}
		components = append(components, component)
	}
	return components, nil
}

// component returns a module. Its hash is that of go.sum: the SHA-256 of the list of its files' hashes.
func component(module debug.Module) (cyclonedx.Component, error) {
	packageURL := "pkg:golang/" + module.Path + "@" + url.QueryEscape(module.Version) // a version may contain a +
	component := cyclonedx.Component{
		BOMRef: packageURL, PackageURL: packageURL,
		Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version,
	}
	if module.Sum == "" {
		return component, nil
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
	if err != nil {
		return component, fmt.Errorf("read the sum of %s: %w", module.Path, err)
	}
	component.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	return component, nil
}

func references(components []cyclonedx.Component) *[]string {
	var all []string
	for _, component := range components {
		all = append(all, component.BOMRef)
	}
	return &all
}

// recorded are the settings of a build.
var recorded = []string{"GOOS", "GOARCH", "CGO_ENABLED", "-trimpath", "vcs", "vcs.revision", "vcs.time", "vcs.modified"}

func properties(settings []debug.BuildSetting) *[]cyclonedx.Property {
	var properties []cyclonedx.Property
	for _, setting := range settings {
		if slices.Contains(recorded, setting.Key) {
			properties = append(properties, cyclonedx.Property{Name: "go:build:" + setting.Key, Value: setting.Value})
		}
	}
	return &properties
}
