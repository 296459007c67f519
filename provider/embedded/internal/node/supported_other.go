//go:build !linux

package node

import "errors"

var errNotLinux = errors.New("a real node requires Linux")

type tools struct{ containerd, ctr, runc, busybox, plugins string }

// Supported returns an error, because this system cannot run a real node.
func Supported() error { return errNotLinux }

func findTools() (tools, error) { return tools{}, errNotLinux }

func makeCgroups(string) error { return errNotLinux }

func removeCgroups(string) error { return nil }
