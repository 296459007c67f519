package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// checkBinary checks the build information of the runner in an unpacked archive, and its bill of materials, and runs it if it is for this
// machine.
func (r release) checkBinary(dir string, p platform) error {
	runner := filepath.Join(dir, "runner")
	if p.system == "windows" {
		runner += ".exe"
	}
	info, err := buildinfo.ReadFile(runner)
	if err != nil {
		return fmt.Errorf("read what the runner is built from: %w", err)
	}
	errs := []error{r.checkBill(p, info)}
	for key, want := range map[string]string{
		"GOOS": p.system, "GOARCH": p.architecture, "CGO_ENABLED": "0", "-trimpath": "true",
		"vcs.revision": r.Commit, "vcs.modified": "false",
	} {
		if !slices.Contains(info.Settings, debug.BuildSetting{Key: key, Value: want}) {
			errs = append(errs, fmt.Errorf("the runner was not built with %s=%s", key, want))
		}
	}
	if slices.ContainsFunc(info.Settings, func(setting debug.BuildSetting) bool { return setting.Key == "-gcflags" }) {
		errs = append(errs, errors.New("the runner was built with flags for the compiler (GOFLAGS)"))
	}
	if p == (platform{runtime.GOOS, runtime.GOARCH}) {
		errs = append(errs, r.checkVersion(runner))
	}
	return errors.Join(errs...)
}

// checkVersion checks the output of runner version.
func (r release) checkVersion(runner string) error {
	output, err := exec.Command(runner, "version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("runner version: %w: %s", err, output)
	}
	if text := string(output); !strings.HasPrefix(text, "runner v"+r.Version+" ") || !strings.Contains(text, "commit "+r.Commit) {
		return fmt.Errorf("runner version prints %q, want v%s and commit %s", text, r.Version, r.Commit)
	}
	return nil
}

// checkBill compares the bill of materials with the binary: it must list exactly the linked modules.
func (r release) checkBill(p platform, info *buildinfo.BuildInfo) error {
	file, err := os.Open(filepath.Join(r.dir, r.bill(p)))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	bill := cyclonedx.BOM{}
	if err := cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		return fmt.Errorf("read %s: %w", file.Name(), err)
	}
	var listed []string
	if bill.Components != nil {
		for _, component := range *bill.Components {
			listed = append(listed, component.Name+" "+component.Version)
		}
	}
	linked := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, module := range info.Deps {
		if module.Replace != nil { // by go.work
			module = module.Replace
		}
		linked = append(linked, module.Path+" "+module.Version)
	}
	slices.Sort(listed)
	slices.Sort(linked)
	if !slices.Equal(listed, linked) {
		return fmt.Errorf("%s lists %q, want %q", file.Name(), listed, linked)
	}
	return nil
}
