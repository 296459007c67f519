package environments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ahead is a part that uses a runner whose clock is 90 s ahead of the cluster's. The runner is built with a copy of Go's package time in
// which Now adds them.
func ahead(ctx context.Context, site *site) error {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go's standard library: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	shifted := strings.Replace(string(source), reads, reads+"\tsec += 90\n", 1)
	if shifted == string(source) {
		return errors.New("time.Now of this version of Go reads the clock in another way: adapt hack/survey/environments/clock.go")
	}
	changed, overlay := filepath.Join(site.folder, "time.go"), filepath.Join(site.folder, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(changed, []byte(shifted), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		return err
	}
	site.runner = filepath.Join(site.folder, "runner")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", site.runner, "./cmd/runner")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build a runner whose clock is ahead: %w\n%s", err, output)
	}
	return nil
}
