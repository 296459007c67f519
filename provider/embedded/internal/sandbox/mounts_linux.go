package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/sys/mount"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// private are the directories at the root of the host that a sandbox does not see: it has its own.
var private = []string{"dev", "proc", "run", "tmp", "var"}

// writable are those that it sees and may write to, since control groups are there. It may only read the others.
var writable = []string{"sys"}

// devices are the device nodes of a sandbox, with their numbers: those that every container has, and the kernel's log, which a
// kubelet reads. They are its own, because runc changes the owner of what it finds as /dev/null when that is a file.
var devices = map[string][2]uint32{
	"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "tty": {5, 0}, "kmsg": {1, 11},
}

// deviceLinks are the symbolic links in the directory of a sandbox's devices.
var deviceLinks = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
}

// mount gives the sandbox a root file system: the host's programs to read, and its own /run, /tmp and /var. Whatever is
// mounted from here on is seen in the sandbox only.
func (s Spec) mount() error {
	if err := syscall.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := mount.MakeRPrivate("/"); err != nil {
		return err
	}
	if err := mount.Mount("tmpfs", s.Root, "tmpfs", ""); err != nil {
		return err
	}
	if err := s.mountHost(); err != nil {
		return err
	}
	if err := s.mountOwn(); err != nil {
		return err
	}
	if err := s.pivotRoot(); err != nil {
		return err
	}
	// Pods may ask for mounts to be propagated, which needs a shared root, as systemd makes it on a host.
	if err := mount.MakeRShared("/"); err != nil {
		return err
	}
	return s.mountSysctls()
}

// mountHost shows the sandbox what is in the host's root, but its private directories.
func (s Spec) mountHost() error {
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
			if err := s.bind("/"+name, "rbind"); err != nil {
				return err
			}
			if slices.Contains(writable, name) {
				continue
			}
			if err := makeReadOnly(filepath.Join(s.Root, name)); err != nil {
				return fmt.Errorf("make /%s of the host read-only: %w", name, err)
			}
		}
	}
	return nil
}

// makeReadOnly makes a mount and all mounts below it read-only. The option ro of a recursive bind mount concerns only the first.
func makeReadOnly(path string) error {
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, readOnly); !errors.Is(err, unix.ENOSYS) {
		return err
	}
	return remountReadOnly(path) // before Linux 5.12
}

// remountReadOnly makes a mount and all mounts below it read-only, one after the other.
func remountReadOnly(path string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(path))
	if err != nil {
		return err
	}
	for _, found := range mounts {
		if err := mount.Mount("", found.Mountpoint, "", "remount,bind,ro,"+strings.TrimPrefix(found.Options, "rw,")); err != nil {
			return err
		}
	}
	return nil
}

// bind shows the sandbox a directory of the host under the same path.
func (s Spec) bind(path, options string) error {
	inside := filepath.Join(s.Root, path)
	if err := os.MkdirAll(inside, 0o755); err != nil {
		return err
	}
	return mount.Mount(path, inside, "", options)
}

// mountOwn gives the sandbox its own directories, and then the few of the host that the spec names, which may be inside
// those.
func (s Spec) mountOwn() error {
	inside := func(path string) string { return filepath.Join(s.Root, path) }
	for _, path := range private {
		if err := os.MkdirAll(inside(path), 0o755); err != nil {
			return err
		}
	}
	if err := mount.Mount("proc", inside("proc"), "proc", ""); err != nil {
		return err
	}
	if err := makeDevices(inside("dev")); err != nil {
		return err
	}
	if err := mount.Mount(s.Disk, inside("var"), "", "bind"); err != nil {
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
	for _, path := range s.ReadOnlyMounts {
		if err := s.bind(path, "bind,ro"); err != nil {
			return err
		}
	}
	for _, path := range s.Mounts {
		if err := s.bind(path, "bind"); err != nil {
			return err
		}
	}
	return nil
}

// makeDevices fills a directory with the devices of a sandbox, so that nothing in it can change or remove one of the host.
func makeDevices(dir string) error {
	for name, number := range devices {
		path := filepath.Join(dir, name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(number[0], number[1]))); err != nil { //nolint:gosec // they are small
			return fmt.Errorf("make the device %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { // whatever the umask is
			return err
		}
	}
	for name, target := range deviceLinks {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, path := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dir, path), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		mount.Mount("devpts", filepath.Join(dir, "pts"), "devpts", "newinstance,ptmxmode=0666,mode=0620"),
		mount.Mount("shm", filepath.Join(dir, "shm"), "tmpfs", "mode=1777"),
		mount.Mount("mqueue", filepath.Join(dir, "mqueue"), "mqueue", ""),
	)
}

// pivotRoot makes the root file system the sandbox's root and lets go of the host's.
func (s Spec) pivotRoot() error {
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
	if err := mount.Unmount("/host"); err != nil {
		return fmt.Errorf("let go of the host's root: %w", err)
	}
	return os.Remove("/host")
}

// mountSysctls covers kernel settings of the whole host with files that show what the kubelet wants to see, which it
// would change otherwise.
func (s Spec) mountSysctls() error {
	if err := os.Mkdir("/run/sysctls", 0o700); err != nil {
		return err
	}
	for name, value := range s.Sysctls {
		shown := filepath.Join("/run/sysctls", filepath.Base(name))
		if err := os.WriteFile(shown, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		if err := mount.Mount(shown, filepath.Join("/proc/sys", name), "", "bind"); err != nil {
			return err
		}
	}
	return nil
}
