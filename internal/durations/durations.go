// Package durations remembers how long behaviors took, so that the next run begins with the longest.
package durations

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// File is where durations are kept, in the user's cache directory.
func File() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	return filepath.Join(dir, "deletion-conformance", "durations.json"), nil
}

// Load reads what is remembered, by behavior id. A file that is missing or broken is nothing remembered: durations
// only make runs faster.
func Load(file string) map[string]time.Duration {
	content, err := os.ReadFile(file)
	remembered := map[string]time.Duration{}
	if err != nil || json.Unmarshal(content, &remembered) != nil || remembered == nil {
		return map[string]time.Duration{}
	}
	return remembered
}

// Save adds the durations of a run to those remembered. Only behaviors that passed count: a failure's duration says
// how long the run waited.
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
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("remember durations: %w", err)
	}
	// In one step: runs side by side do not read one another's half of a file.
	if err := maybe.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("remember durations: %w", err)
	}
	return nil
}
