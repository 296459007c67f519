package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	// cgroupPatience is how long the kernel may take to notice that a killed process has left its control group.
	cgroupPatience = 5 * time.Second
)

// hierarchies are the roots of the control groups: one with version 2, one a controller with version 1.
func hierarchies() ([]string, error) {
	if unified() {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, entry := range entries {
		if entry.IsDir() { // the others are links to these
			roots = append(roots, filepath.Join(cgroupRoot, entry.Name()))
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("nothing in %s", cgroupRoot)
	}
	return roots, nil
}

// unified says that control groups have version 2.
func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// cgroupsSupported is nil when control groups for a node can be made.
func cgroupsSupported() error {
	name := fmt.Sprintf("deletion-conformance-probe-%d", os.Getpid())
	if err := errors.Join(makeCgroups(name), removeCgroups(name)); err != nil {
		return fmt.Errorf("a real node needs control groups of its own, which this machine does not allow: %w", err)
	}
	return nil
}

// makeCgroups makes a control group in every hierarchy.
func makeCgroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return fmt.Errorf("make control groups: %w", err)
	}
	if unified() {
		if err := enableControllers(); err != nil {
			return fmt.Errorf("make control groups: %w", err)
		}
	}
	for _, root := range roots {
		group := filepath.Join(root, name)
		if err := os.Mkdir(group, 0o755); err != nil {
			return fmt.Errorf("make control groups: %w", err)
		}
		// With version 1 a new cpuset is empty, and nothing can run in it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := copySetting(filepath.Join(root, file), filepath.Join(group, file)); err != nil {
				return fmt.Errorf("make control groups: %w", err)
			}
		}
	}
	return nil
}

// kubeletControllers are those without which a kubelet does not start, where the kernel has them.
var kubeletControllers = []string{"cpu", "cpuset", "hugetlb", "memory", "pids"}

// enableControllers lets control groups of version 2 have the controllers a kubelet needs. Most systems have most of
// them enabled; what is enabled here stays so, which is without effect on groups that set nothing.
func enableControllers() error {
	const control = cgroupRoot + "/cgroup.subtree_control"
	available, err := words(cgroupRoot + "/cgroup.controllers")
	if err != nil {
		return err
	}
	enabled, err := words(control)
	if err != nil {
		return err
	}
	for _, controller := range kubeletControllers {
		if !slices.Contains(available, controller) || slices.Contains(enabled, controller) {
			continue
		}
		if err := os.WriteFile(control, []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("enable the controller %s: %w", controller, err)
		}
	}
	return nil
}

func words(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	return strings.Fields(string(content)), err
}

// copySetting copies a setting from a control group to its child, where it has it and the child has none.
func copySetting(from, to string) error {
	value, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || strings.TrimSpace(string(value)) == "" {
		return err
	}
	return os.WriteFile(to, value, 0o644)
}

// removeCgroups removes the control groups with everything below them. The processes in them must be on their way out.
func removeCgroups(name string) error {
	roots, err := hierarchies()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // without control groups there are none of a node either
	}
	failures := []error{err}
	for _, root := range roots {
		if err := removeCgroup(filepath.Join(root, name)); err != nil {
			failures = append(failures, fmt.Errorf("remove control groups: %w", err))
		}
	}
	return errors.Join(failures...)
}

// removeCgroup asks again and again, as nothing tells with version 1 that a group has become empty.
func removeCgroup(group string) error {
	for deadline := time.Now().Add(cgroupPatience); ; time.Sleep(20 * time.Millisecond) {
		err := removeTree(group)
		if err == nil || !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return err
		}
	}
}

// removeTree removes a control group, those below it first.
func removeTree(group string) error {
	var groups []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(groups) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
