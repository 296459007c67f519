package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/moby/sys/mount"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestDevicesAreNotThoseOfTheHost(t *testing.T) {
	dir := t.TempDir()
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlock it, so that the mounts end with the goroutine
		made <- inMounts(func() error {
			if err := mount.Mount("tmpfs", dir, "tmpfs", ""); err != nil {
				return err
			}
			if err := makeDevices(dir); err != nil {
				return err
			}
			checkDevices(t, dir)
			return nil
		})
	}()
	switch err := <-made; {
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
