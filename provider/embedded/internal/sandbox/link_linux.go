package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// linkName is the interface of a Link in the sandbox that creates it. The kernel names the other interface linkPeer.
const (
	linkName = "link"
	linkPeer = "veth0"
)

// Connect connects the networks of two sandboxes: everything at the addresses of one reaches the addresses of the other. The connection
// ends with either of them, and a new one replaces it.
func Connect(busybox string, one, other End) error {
	for _, end := range []End{one, other} {
		if err := errorIn(end.Sandbox, func() error { return disconnect(busybox) }); err != nil {
			return err
		}
	}
	return errorIn(one.Sandbox, func() error {
		if err := ip(busybox, "link", "add", "name", linkName, "type", "veth"); err != nil {
			return err
		}
		if err := ip(busybox, "link", "set", "dev", linkPeer, "netns", fmt.Sprint(other.Sandbox.process.Process.Pid)); err != nil {
			return err
		}
		if err := errorIn(other.Sandbox, func() error { return route(busybox, linkPeer, other, one) }); err != nil {
			return err
		}
		return route(busybox, linkName, one, other)
	})
}

// disconnect removes the interface to a sandbox that has ended: the kernel removes it some time after that sandbox.
func disconnect(busybox string) error {
	for _, name := range []string{linkName, linkPeer} {
		if !exists(name) {
			continue
		}
		if err := ip(busybox, "link", "delete", "dev", name); err != nil && exists(name) {
			return err
		}
	}
	return nil
}

func exists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// route sends what is for the other end to an interface.
func route(busybox, device string, from, to End) error {
	for _, arguments := range [][]string{
		{"link", "set", "dev", device, "up"},
		{"route", "add", to.Address + "/32", "dev", device, "src", from.Address},
		{"route", "add", to.Pods, "via", to.Address, "dev", device},
	} {
		if err := ip(busybox, arguments...); err != nil {
			return err
		}
	}
	return nil
}

// errorIn calls a function on a thread in the network of a sandbox. The thread is not used again.
func errorIn(sandbox *Sandbox, do func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		failed <- enter(sandbox, do)
	}()
	return <-failed
}

func enter(sandbox *Sandbox, do func() error) error {
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", sandbox.process.Process.Pid))
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network of a sandbox: %w", err)
	}
	return do()
}

// ip executes the ip command of busybox.
func ip(busybox string, arguments ...string) error {
	if output, err := exec.Command(busybox, append([]string{"ip"}, arguments...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return nil
}
