// Package durations remembers how long behaviours took, so that the next run begins with the longest.
package durations

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// File is where durations are kept, in the user's cache folder.
func File() (string, error) {
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w", err)
	}
	return filepath.Join(folder, "deletion-conformance", "durations.json"), nil
}

// Load reads what is remembered, by behaviour id. A file that is missing or broken is nothing remembered: durations
// only make runs faster.
func Load(file string) map[string]time.Duration {
	content, err := os.ReadFile(file)
	remembered := map[string]time.Duration{}
	if err != nil || json.Unmarshal(content, &remembered) != nil || remembered == nil {
		return map[string]time.Duration{}
	}
	return remembered
}

// Save adds the durations of a run to those remembered. Only behaviours that passed count: a failure's duration says
// how patient the run was.
func Save(file string, remembered map[string]time.Duration, r v1alpha1.Report) error {
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if result.Outcome == v1alpha1.Passed {
				remembered[result.ID] = time.Duration(result.Seconds * float64(time.Second))
			}
		}
	}
	content, err := json.MarshalIndent(remembered, "", "  ")
	if err != nil {
		return fmt.Errorf("remember durations: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("remember durations: %w", err)
	}
	partial := fmt.Sprintf("%s.%d", file, os.Getpid()) // runs side by side do not write into one another's file
	if err := os.WriteFile(partial, content, 0o644); err != nil {
		return fmt.Errorf("remember durations: %w", err)
	}
	return os.Rename(partial, file)
}
