package main

import (
	"context"
	"path/filepath"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/faults"
)

// throughFaults starts the cluster that is prepared in a directory, behind a proxy with network faults. It returns the runner's arguments,
// and a function that stops both.
func (l laboratory) throughFaults(ctx context.Context, dir string) (arguments []string, leave func(), err error) {
	built, err := l.kubernetes()
	if err != nil {
		return nil, nil, err
	}
	binaries := filepath.Join(dir, "kubernetes", filepath.Base(built))
	cluster := embedded.New(binaries)
	if err := cluster.Create(ctx); err != nil {
		return nil, nil, err
	}
	remove := func() { _ = cluster.Destroy() } // `runner cleanup` removes what remains
	kubeconfig, clear, err := faults.Listen(cluster.RESTConfig(), faults.All(l.faults), dir)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return []string{"--kubeconfig", kubeconfig, "--kubectl", filepath.Join(binaries, "kubectl"), "--disruptive"}, func() { clear(); remove() }, nil
}
