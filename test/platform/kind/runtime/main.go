//go:build linux

// Command runtime is an OCI runtime for Docker on machines whose root user lacks capabilities, such as CAP_SYS_RESOURCE: runc refuses to
// start a privileged container there. This command removes capabilities, resource limits and OOM score adjustments that it does not have
// itself from the configuration of a process, and executes runc. It grants no additional rights.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/capability"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "runtime: %v\n", err)
		os.Exit(1)
	}
}

// run changes runc's configuration, and executes runc.
func run(args []string) error {
	own, err := ownRights()
	if err != nil {
		return err
	}
	if bundle := flag(args, "--bundle", "-b"); bundle != "" {
		err = own.narrowBundle(filepath.Join(bundle, "config.json"))
	} else if process := flag(args, "--process", "-p"); process != "" {
		err = own.narrowProcess(process)
	}
	if err != nil {
		return err
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return unix.Exec(runc, append([]string{runc}, args...), os.Environ())
}

// flag returns the value of a flag of runc; empty when it is not set.
func flag(args []string, names ...string) string {
	for i, arg := range args {
		name, value, together := strings.Cut(arg, "=")
		switch {
		case !slices.Contains(names, name):
		case together:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

// rights are the rights that this process can grant.
type rights struct {
	capabilities capability.Capabilities
	// oomScore is the lowest permitted OOM score adjustment.
	oomScore int
}

func ownRights() (rights, error) {
	capabilities, err := capability.NewPid2(0)
	if err == nil {
		err = capabilities.Load()
	}
	if err != nil {
		return rights{}, fmt.Errorf("read this process's capabilities: %w", err)
	}
	score, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return rights{}, err
	}
	oomScore, err := strconv.Atoi(string(bytes.TrimSpace(score)))
	return rights{capabilities, oomScore}, err
}

// narrowBundle restricts the process of a new container.
func (r rights) narrowBundle(file string) error {
	spec := map[string]json.RawMessage{} // keep unknown fields
	if err := read(file, &spec); err != nil {
		return err
	}
	process := &specs.Process{}
	if err := json.Unmarshal(spec["process"], process); err != nil {
		return fmt.Errorf("read the process of %s: %w", file, err)
	}
	r.narrow(process)
	var err error
	if spec["process"], err = json.Marshal(process); err != nil {
		return err
	}
	return write(file, spec)
}

// narrowProcess restricts a process that is executed in a container.
func (r rights) narrowProcess(file string) error {
	process := &specs.Process{}
	if err := read(file, process); err != nil {
		return err
	}
	r.narrow(process)
	return write(file, process)
}

// narrow removes rights that cannot be granted. If limits may not be raised, it removes all of them.
func (r rights) narrow(process *specs.Process) {
	if sets := process.Capabilities; sets != nil {
		for _, set := range []*[]string{&sets.Bounding, &sets.Effective, &sets.Inheritable, &sets.Permitted, &sets.Ambient} {
			*set = slices.DeleteFunc(*set, r.misses)
		}
	}
	if !r.capabilities.Get(capability.PERMITTED, capability.CAP_SYS_RESOURCE) {
		process.Rlimits = nil
		if score := process.OOMScoreAdj; score != nil && *score < r.oomScore {
			process.OOMScoreAdj = &r.oomScore
		}
	}
}

// misses reports whether this process does not have a capability, named as in CAP_CHOWN.
func (r rights) misses(name string) bool {
	known := capability.ListKnown()
	i := slices.IndexFunc(known, func(c capability.Cap) bool { return "CAP_"+strings.ToUpper(c.String()) == name })
	return i < 0 || !r.capabilities.Get(capability.PERMITTED, known[i])
}

func read(file string, into any) error {
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}

func write(file string, what any) error {
	content, err := json.Marshal(what)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
