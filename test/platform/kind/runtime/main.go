//go:build linux

// Command runtime is an OCI runtime for Docker on machines whose root is not allowed everything, such as one without
// CAP_SYS_RESOURCE: runc refuses to start a privileged container there, because it cannot give what it does not have. This
// takes out of what a process is to get what this one lacks itself (capabilities, limits of resources, and a protection
// from the kernel's memory killer), and hands on to runc. What is started so has no more rights than without it.
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

// run changes what runc is about to read, and becomes runc.
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

// flag is the value of a flag that runc is called with; empty where it is not given.
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

// rights are what this process can hand on.
type rights struct {
	capabilities capability.Capabilities
	// oomScore is the lowest protection from the memory killer that may be asked for.
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

// narrowBundle narrows the process of a container that is to be created.
func (r rights) narrowBundle(file string) error {
	spec := map[string]json.RawMessage{} // with what this program does not know
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

// narrowProcess narrows a process that is to be executed in a container.
func (r rights) narrowProcess(file string) error {
	process := &specs.Process{}
	if err := read(file, process); err != nil {
		return err
	}
	r.narrow(process)
	return write(file, process)
}

// narrow takes out of what a process is to get what cannot be given. Whoever may not raise limits leaves them as they are.
func (r rights) narrow(process *specs.Process) {
	if sets := process.Capabilities; sets != nil {
		for _, set := range []*[]string{&sets.Bounding, &sets.Effective, &sets.Inheritable, &sets.Permitted, &sets.Ambient} {
			*set = slices.DeleteFunc(*set, r.lacks)
		}
	}
	if !r.capabilities.Get(capability.PERMITTED, capability.CAP_SYS_RESOURCE) {
		process.Rlimits = nil
		if score := process.OOMScoreAdj; score != nil && *score < r.oomScore {
			process.OOMScoreAdj = &r.oomScore
		}
	}
}

// lacks says whether this process has not got a capability, named as in CAP_CHOWN.
func (r rights) lacks(name string) bool {
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
