package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/moby/sys/mount"
	"github.com/moby/sys/mountinfo"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestDevices(t *testing.T) {
	dir := t.TempDir()
	inOwnMounts(t, func() error {
		if err := mount.Mount("tmpfs", dir, "tmpfs", ""); err != nil {
			return err
		}
		if err := makeDevices(dir); err != nil {
			return err
		}
		checkDevices(t, dir)
		return nil
	})
}

func TestMakeReadOnly(t *testing.T) {
	for name, makeReadOnly := range map[string]func(string) error{"in one call": makeReadOnly, "one after the other": remountReadOnly} {
		t.Run(name, func(t *testing.T) {
			host, bound := t.TempDir(), t.TempDir()
			inOwnMounts(t, func() error {
				below := filepath.Join(host, "below")
				if err := os.Mkdir(below, 0o700); err != nil {
					return err
				}
				for _, path := range []string{below, filepath.Join(below, "two")} {
					if err := errors.Join(os.MkdirAll(path, 0o700), mount.Mount("tmpfs", path, "tmpfs", "nosuid")); err != nil {
						return err
					}
				}
				if err := errors.Join(mount.Mount(host, bound, "", "rbind"), makeReadOnly(bound)); err != nil {
					return err
				}
				g := NewWithT(t)
				for _, path := range []string{"", "below", "below/two"} {
					g.Expect(os.WriteFile(filepath.Join(bound, path, "file"), nil, 0o600)).To(MatchError(unix.EROFS), path)
					g.Expect(os.WriteFile(filepath.Join(host, path, "file"), nil, 0o600)).To(Succeed(), "the host is not changed")
				}
				found, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(filepath.Join(bound, "below")))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found).To(HaveLen(1))
				g.Expect(found[0].Options).To(ContainSubstring("nosuid"), "other options stay")
				return nil
			})
		})
	}
}

// inOwnMounts does something in a mount namespace that ends with it.
func inOwnMounts(t *testing.T, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		defer close(done)      // also after a failed assertion
		runtime.LockOSThread() // and never unlock it, so that the mounts end with the goroutine
		done <- inMounts(do)
	}()
	switch err := <-done; {
	case os.Geteuid() != 0:
		t.Skip("only root has mounts of its own:", err)
	case err != nil:
		t.Error(err)
	}
}

// inMounts does something on this thread in a separate mount namespace.
func inMounts(do func() error) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	if err := mount.MakeRPrivate("/"); err != nil {
		return err
	}
	return do()
}

// checkDevices fails the test unless the directory has devices that work, and that another than the host's file system holds.
func checkDevices(t *testing.T, dir string) {
	g := NewWithT(t)
	var own, host unix.Stat_t
	g.Expect(unix.Stat(filepath.Join(dir, "null"), &own)).To(Succeed())
	g.Expect(unix.Stat(os.DevNull, &host)).To(Succeed())
	g.Expect(own.Rdev).To(Equal(unix.Mkdev(1, 3)))
	g.Expect(own.Dev).NotTo(Equal(host.Dev), "the device node is one of the host")
	g.Expect(own.Mode & 0o777).To(BeEquivalentTo(0o666))
	g.Expect(os.WriteFile(filepath.Join(dir, "null"), []byte("nothing"), 0o600)).To(Succeed())
	for _, terminal := range []string{"pts/ptmx", "shm", "mqueue", "ptmx", "fd", "kmsg"} {
		g.Expect(filepath.Join(dir, terminal)).To(Or(BeAnExistingFile(), BeADirectory()))
	}
}
