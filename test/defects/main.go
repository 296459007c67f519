// Command defects proves that the suites notice when Kubernetes breaks its promises. It plants small defects in a copy of
// Kubernetes' source, one at a time, runs the suites against each, and says which behaviours failed.
//
//	go run ./test/defects                  # all of them, and an unharmed one to compare with
//	go run ./test/defects 'grace/*' kubelet/grace-ignored
//	go run ./test/defects -list
//
// A defect is a file below planted/. All are built into one binary, which reads the name of the one that is to act from
// a file beside itself: a build takes minutes, and so there is only one. What is left of a run is in bin/defects/runs/NAME:
// the runner there runs with that defect again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// workFolder is where everything is built and reported, below the repository's root.
const workFolder = "bin/defects"

var errUnnoticed = errors.New("not every defect was noticed as its file says")

func main() {
	list := flag.Bool("list", false, "list the defects, and run nothing")
	sideBySide := flag.Int("side-by-side", 2, "how many runs go on at the same time")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./test/defects [-list] [-side-by-side N] [NAME|GLOB...]   in the repository's root")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *list, *sideBySide, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "defects:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func run(ctx context.Context, list bool, sideBySide int, patterns []string) error {
	defects, err := readDefects()
	if err != nil {
		return err
	}
	chosen, err := choose(defects, patterns)
	if err != nil {
		return err
	}
	if list {
		for _, defect := range chosen {
			fmt.Printf("%-44s %s\n", defect.Name, defect.Breaks)
		}
		return nil
	}
	folder, err := filepath.Abs(workFolder)
	if err != nil {
		return err
	}
	laboratory := laboratory{folder: folder}
	if err := laboratory.build(ctx, defects); err != nil {
		return err
	}
	return laboratory.judgeAll(ctx, chosen, sideBySide)
}
