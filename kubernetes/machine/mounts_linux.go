package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// private are the folders at the root of the host that the machine does not see: it has its own.
var private = []string{"proc", "run", "tmp", "var"}

// writable are those that it sees and may write to, since devices and control groups are there. It may only read the
// others.
var writable = []string{"dev", "sys"}

// mount gives the machine a root file system: the host's programs to read, and its own /run, /tmp and /var. Whatever is
// mounted from here on is seen in the machine only.
func (s setup) mount() error {
	if err := syscall.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := mountAt("/", "", "", syscall.MS_REC|syscall.MS_PRIVATE); err != nil {
		return err
	}
	if err := mountAt(s.Root, "tmpfs", "tmpfs", 0); err != nil {
		return err
	}
	if err := s.showHost(); err != nil {
		return err
	}
	if err := s.addOwn(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	// Pods may ask for mounts to be propagated, which needs a shared root, as systemd makes it on a host.
	if err := mountAt("/", "", "", syscall.MS_REC|syscall.MS_SHARED); err != nil {
		return err
	}
	return s.showSettings()
}

// showHost lets the machine see what is in the host's root, but its private folders.
func (s setup) showHost() error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case slices.Contains(private, name):
		case entry.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink("/" + name)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, filepath.Join(s.Root, name)); err != nil {
				return err
			}
		case entry.IsDir():
			if err := s.show("/"+name, syscall.MS_REC, slices.Contains(writable, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// show lets the machine see a folder of the host under the same path, with what is mounted in it if recursive is
// MS_REC.
func (s setup) show(path string, recursive uintptr, write bool) error {
	inside := filepath.Join(s.Root, path)
	if err := os.MkdirAll(inside, 0o755); err != nil {
		return err
	}
	if err := mountAt(inside, path, "", syscall.MS_BIND|recursive); err != nil {
		return err
	}
	if write {
		return nil
	}
	return mountAt(inside, "", "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY)
}

// addOwn gives the machine its own folders, and then shows the few that are shared, which may be inside those.
func (s setup) addOwn() error {
	inside := func(path string) string { return filepath.Join(s.Root, path) }
	for _, path := range []string{"proc", "run", "tmp", "var"} {
		if err := os.MkdirAll(inside(path), 0o755); err != nil {
			return err
		}
	}
	if err := mountAt(inside("proc"), "proc", "proc", 0); err != nil {
		return err
	}
	if err := mountAt(inside("var"), s.Disk, "", syscall.MS_BIND); err != nil {
		return err
	}
	for _, path := range []string{"var/lib", "var/log", "var/cache", "var/tmp"} {
		if err := os.MkdirAll(inside(path), 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("/run", inside("var/run")); err != nil {
		return err
	}
	for _, path := range s.Seen {
		if err := s.show(path, 0, false); err != nil {
			return err
		}
	}
	for _, path := range s.Shared {
		if err := s.show(path, 0, true); err != nil {
			return err
		}
	}
	return nil
}

// enter makes the root file system the machine's root and lets go of the host's.
func (s setup) enter() error {
	old := filepath.Join(s.Root, "host")
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := syscall.PivotRoot(s.Root, old); err != nil {
		return fmt.Errorf("change the root to %s: %w", s.Root, err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := syscall.Unmount("/host", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's root: %w", err)
	}
	return os.Remove("/host")
}

// showSettings covers kernel settings of the whole host with files that show what the kubelet wants to see, which it
// would change otherwise.
func (s setup) showSettings() error {
	if err := os.Mkdir("/run/settings", 0o700); err != nil {
		return err
	}
	for name, value := range s.Settings {
		shown := filepath.Join("/run/settings", filepath.Base(name))
		if err := os.WriteFile(shown, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		if err := mountAt(filepath.Join("/proc/sys", name), shown, "", syscall.MS_BIND); err != nil {
			return err
		}
	}
	return nil
}

// mountAt is syscall.Mount with the path first, as that is what errors are about.
func mountAt(path, source, kind string, flags uintptr) error {
	if err := syscall.Mount(source, path, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	return nil
}
