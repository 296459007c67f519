package build

import (
	"errors"
	"os/exec"
)

var errWindows = errors.New("an embedded Kubernetes is built and run on Linux and macOS: on Windows run this in WSL")

// supported is nil where Kubernetes can be built and run; otherwise it says in one line what to do.
func supported() error { return errWindows }

func inOwnGroup(*exec.Cmd) {}
