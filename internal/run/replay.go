package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/renameio/v2/maybe"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/scenarios"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// replayKind is the kind of a file with what broke a promise.
const replayKind = "DeletionConformanceHistory"

// replay is what a file holds that `runner explore --replay` runs: programs, and what they did when they broke a promise.
type replay struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Property is the property that failed.
	Property string `json:"property"`
	Scenario string `json:"scenario"`
	// Resource is the resource that was explored; empty for ConfigMaps.
	Resource string             `json:"resource,omitempty"`
	Seed     uint64             `json:"seed"`
	Programs []generate.Program `json:"programs"`
	History  *history.History   `json:"history,omitempty"`
}

func (r replay) write(file string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = maybe.WriteFile(file, append(content, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the history to %s: %w", file, err)
	}
	return nil
}

// readReplay reads a file and checks that it can be run.
func readReplay(file string) (replay, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return replay{}, err
	}
	var read replay
	if err := json.Unmarshal(content, &read); err != nil || read.Kind != replayKind {
		return replay{}, fmt.Errorf("%s is not a replay file from `runner explore`", file)
	}
	if read.APIVersion != v1alpha1.APIVersion {
		return replay{}, fmt.Errorf("%s has version %q; this runner reads %s", file, read.APIVersion, v1alpha1.APIVersion)
	}
	if len(read.Programs) == 0 || len(read.Programs) > maxClients {
		return replay{}, fmt.Errorf("%s must have between 1 and %d programs", file, maxClients)
	}
	scenario := scenarios.Named(cmp.Or(read.Scenario, scenarios.Objects.Name))
	if scenario == nil {
		return replay{}, fmt.Errorf("%s has the unknown scenario %q", file, read.Scenario)
	}
	read.Scenario = scenario.Name
	return read, generate.Check(read.Programs, scenario.Objects+scenario.Barrier)
}
