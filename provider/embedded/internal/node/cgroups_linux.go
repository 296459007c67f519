package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	cgroupsv1 "github.com/opencontainers/cgroups/fs"
	cgroupsv2 "github.com/opencontainers/cgroups/fs2"
)

// cgroupRoot is where control groups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// cgroupsOf manages the control groups of a name at the root of every hierarchy: one with version 2, one a controller
// with version 1.
func cgroupsOf(name string) (cgroups.Manager, error) {
	config := &cgroups.Cgroup{Path: "/" + name, Resources: &cgroups.Resources{}}
	if cgroups.IsCgroup2UnifiedMode() {
		return cgroupsv2.NewManager(config, filepath.Join(cgroupRoot, name))
	}
	return cgroupsv1.NewManager(config, nil)
}

// cgroupsSupported is nil when control groups for a node can be made.
func cgroupsSupported() error {
	name := fmt.Sprintf("deletion-conformance-probe-%d", os.Getpid())
	if err := errors.Join(makeCgroups(name), removeCgroups(name)); err != nil {
		return fmt.Errorf("a real node needs control groups of its own, which this machine does not allow: %w", err)
	}
	return nil
}

// makeCgroups makes the control groups, and lets those of version 2 have the controllers that a kubelet needs. What that
// enables stays so, which is without effect on groups that set nothing.
func makeCgroups(name string) error {
	manager, err := cgroupsOf(name)
	if err != nil {
		return fmt.Errorf("make control groups: %w", err)
	}
	const noProcess = -1
	if err := manager.Apply(noProcess); err != nil {
		return fmt.Errorf("make control groups: %w", err)
	}
	return nil
}

// removeCgroups removes the control groups with everything below them. The processes in them must be on their way out.
func removeCgroups(name string) error {
	if _, err := os.Stat(cgroupRoot); errors.Is(err, fs.ErrNotExist) {
		return nil // without control groups there are none of a node either
	}
	manager, err := cgroupsOf(name)
	if err != nil {
		return fmt.Errorf("remove control groups: %w", err)
	}
	if err := manager.Destroy(); err != nil {
		return fmt.Errorf("remove control groups: %w", err)
	}
	return nil
}
