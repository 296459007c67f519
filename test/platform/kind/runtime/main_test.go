//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/moby/sys/capability"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// without returns the rights of a process with every capability but one, and some OOM protection.
func without(t *testing.T, lacking capability.Cap) rights {
	t.Helper()
	capabilities, err := capability.NewPid2(0)
	if err != nil {
		t.Fatal(err)
	}
	capabilities.Set(capability.PERMITTED, capability.ListKnown()...)
	capabilities.Unset(capability.PERMITTED, lacking)
	return rights{capabilities, -10}
}

func privileged() *specs.Process {
	score, all := -999, []string{"CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_OF_TOMORROW"}
	return &specs.Process{
		Args: []string{"init"}, OOMScoreAdj: &score, Rlimits: []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: 1 << 20}},
		Capabilities: &specs.LinuxCapabilities{Bounding: all, Permitted: append([]string{}, all...)},
	}
}

func TestNarrowProcess(t *testing.T) {
	process := privileged()
	without(t, capability.CAP_SYS_RESOURCE).narrow(process)
	want := []string{"CAP_CHOWN"}
	if got := process.Capabilities; !reflect.DeepEqual(got.Bounding, want) || !reflect.DeepEqual(got.Permitted, want) {
		t.Errorf("want the capabilities %v, got %v and %v", want, got.Bounding, got.Permitted)
	}
	if process.Rlimits != nil || *process.OOMScoreAdj != -10 {
		t.Errorf("want no limits and the process's own protection, got %v and %d", process.Rlimits, *process.OOMScoreAdj)
	}
}

func TestNarrowProcess_Unchanged(t *testing.T) {
	process := privileged()
	without(t, capability.CAP_CHOWN).narrow(process)
	if want := []string{"CAP_SYS_RESOURCE"}; !reflect.DeepEqual(process.Capabilities.Bounding, want) {
		t.Errorf("want the capabilities %v, got %v", want, process.Capabilities.Bounding)
	}
	if len(process.Rlimits) != 1 || *process.OOMScoreAdj != -999 {
		t.Errorf("want limits and protection as asked for, got %v and %d", process.Rlimits, *process.OOMScoreAdj)
	}
}

func TestNarrowBundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	spec := map[string]any{"process": privileged(), "unknown": "field"}
	content, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := without(t, capability.CAP_SYS_RESOURCE).narrowBundle(file); err != nil {
		t.Fatal(err)
	}
	var changed struct {
		Process specs.Process
		Unknown string
	}
	if err := read(file, &changed); err != nil {
		t.Fatal(err)
	}
	if len(changed.Process.Capabilities.Bounding) != 1 || changed.Process.Args[0] != "init" || changed.Unknown != "field" {
		t.Errorf("got %+v", changed)
	}
}

func TestFlag(t *testing.T) {
	for _, args := range [][]string{
		{"--root", "/run", "create", "--bundle", "/there", "id"}, {"create", "--bundle=/there"}, {"create", "-b", "/there"},
	} {
		if got := flag(args, "--bundle", "-b"); got != "/there" {
			t.Errorf("%v: got %q", args, got)
		}
	}
	if got := flag([]string{"kill", "id"}, "--bundle", "-b"); got != "" {
		t.Errorf("got %q", got)
	}
}
