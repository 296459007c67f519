package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestCgroups(t *testing.T) {
	name := fmt.Sprintf("deletion-conformance-test-%d", os.Getpid())
	if err := makeCgroups(name); err != nil {
		t.Skip(errors.Join(err, removeCgroups(name))) // not root, most likely
	}
	found := func() []string {
		var all []string
		for _, pattern := range []string{cgroupRoot + "/" + name, cgroupRoot + "/*/" + name} { // version 2, version 1
			matches, err := filepath.Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, matches...)
		}
		return all
	}
	made := found()
	if len(made) == 0 {
		t.Errorf("no control group %s was made in %s", name, cgroupRoot)
	}
	for _, group := range made {
		if err := os.MkdirAll(filepath.Join(group, "pods", "container"), 0o755); err != nil {
			t.Error(err)
		}
	}
	for range 2 { // it is idempotent
		if err := removeCgroups(name); err != nil {
			t.Error(err)
		}
	}
	if left := found(); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
}

func TestSupported_Parallel(t *testing.T) {
	if err := cgroupsSupported(); err != nil {
		t.Skip(err)
	}
	const nodes = 200
	results := make(chan error, nodes)
	for range nodes {
		go func() { results <- cgroupsSupported() }()
	}
	for range nodes {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
}
