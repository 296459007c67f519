package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// DurationsFile remembers how long behaviors took, so that the next run starts with the slowest. It is in the user's cache directory.
func DurationsFile() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	return filepath.Join(dir, "deletion-conformance", "durations.json"), nil
}

// loadDurations reads the durations by behavior id. A missing or invalid file is empty, because durations only make runs faster.
func loadDurations(file string) map[string]time.Duration {
	content, err := os.ReadFile(file)
	remembered := map[string]time.Duration{}
	if err != nil || json.Unmarshal(content, &remembered) != nil || remembered == nil {
		return map[string]time.Duration{}
	}
	return remembered
}

// forget is the part of a remembered duration that stays. A behavior that waits for a resync takes from 2 to 30 s; a run that starts it late
// because the last one was lucky takes half a minute longer.
const forget = 0.75

// saveDurations adds the durations of a run. Only behaviors that passed count, because the duration of a failure is a timeout.
func saveDurations(file string, remembered map[string]time.Duration, r v1alpha1.Report) error {
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if result.Outcome == v1alpha1.Passed {
				took := time.Duration(result.Seconds * float64(time.Second))
				remembered[result.ID] = max(took, time.Duration(forget*float64(remembered[result.ID])))
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
	// Atomically, so that parallel runs do not read partial files.
	if err := maybe.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("remember durations: %w", err)
	}
	return nil
}
