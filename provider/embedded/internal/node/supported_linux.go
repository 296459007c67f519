package node

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/sandbox"
)

// tools are the programs of the host that a node needs.
type tools struct {
	containerd, ctr, runc, busybox string
	// plugins is the directory of the CNI plugins.
	plugins string
}

// debianPackage maps programs to packages.
var debianPackage = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "runc": "runc", "busybox": "busybox-static",
}

// pluginDirs are the directories of CNI plugins in distributions and others.
var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Supported returns nil when this machine can run a real node. Otherwise the error contains the reason and the remedy in one line.
func Supported() error {
	if os.Geteuid() != 0 {
		return errors.New("a real node requires root")
	}
	tools, err := findTools()
	if err != nil {
		return err
	}
	probe := exec.Command(tools.busybox, "true")
	probe.SysProcAttr = sandbox.Namespaces()
	if err := probe.Run(); err != nil {
		return fmt.Errorf("a real node requires its own namespaces, which this machine does not permit (CAP_SYS_ADMIN): %w", err)
	}
	return cgroupsSupported()
}

// findTools finds the programs, or returns which package to install.
func findTools() (tools, error) {
	found := tools{}
	for program, path := range map[string]*string{
		"containerd": &found.containerd, "ctr": &found.ctr, "runc": &found.runc, "busybox": &found.busybox,
	} {
		var err error
		if *path, err = lookPath(program); err != nil {
			return tools{}, fmt.Errorf("a real node requires %s: install the package %s, or run make node-deps",
				program, debianPackage[program])
		}
	}
	if !static(found.busybox) {
		return tools{}, fmt.Errorf("a real node requires a static busybox, and %s is not: install the package %s, or run make node-deps",
			found.busybox, debianPackage["busybox"])
	}
	plugins, known := find(pluginDirs, "ptp", "host-local", "loopback")
	if !known {
		return tools{}, fmt.Errorf("a real node requires CNI plugins, and there are none in %s: install the package "+
			"containernetworking-plugins, or run make node-deps", strings.Join(pluginDirs, ", "))
	}
	found.plugins = plugins
	return found, nil
}

// lookPath finds a program in PATH, or in the directories of administrators' programs, which may be missing in a user's PATH.
func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/local/sbin/", "/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + program); err == nil {
			return path, nil
		}
	}
	return "", err
}

// static reports whether a program is statically linked.
func static(program string) bool {
	file, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
