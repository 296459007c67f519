// Command soak runs the suites many times in a row on one cluster, and at intervals on one with a real node, and shows that nothing grows:
// memory, open files, metrics, processes, temporary files, objects. It prints a row for each run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
)

// soak is a series of runs.
type soak struct {
	// binary is the runner, and folder the directory for temporary files of the runs.
	binary, folder string
	kubeconfig     string
	config         *rest.Config
	// arguments are the arguments of each run besides the cluster.
	arguments []string
	out       io.Writer
}

const (
	// downTime limits how long an interrupted run may take to end.
	downTime = time.Minute
	// restTime limits how long processes of a run may take to end after it.
	restTime = 30 * time.Second
	polling  = 100 * time.Millisecond
)

func main() {
	runs := flag.Int("runs", 200, "`N` runs in a row")
	nodeEvery := flag.Int("node-every", 10, "every `N`th run is followed by one on a cluster with a real node; 0 for none")
	binary := flag.String("runner", "bin/runner", "`FILE` of the runner")
	flag.Parse()
	if err := run(*binary, *runs, *nodeEvery, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(binary string, runs, nodeEvery int, arguments []string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	folder, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := keepFiles(folder); err != nil {
		return err
	}
	binaries, err := binaries.Find(filepath.Join("bin", "kubernetes"), "")
	if err != nil {
		return err
	}
	cluster := embedded.New(binaries)
	if err := cluster.Create(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Destroy()) }()
	s := &soak{binary: binary, folder: folder, kubeconfig: cluster.Kubeconfig(), config: cluster.RESTConfig(), arguments: arguments, out: os.Stdout}
	s.config.WarningHandler = rest.NoWarnings{}
	return s.repeat(ctx, runs, nodeEvery)
}

// keepFiles makes the cluster and all runs put their temporary files into a directory, in which they can be counted, except those of Go when
// a run builds kubectl.
func keepFiles(folder string) error {
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		if err := os.Setenv("GOCACHE", filepath.Join(cache, "go-build")); err != nil {
			return err
		}
	}
	return errors.Join(os.Setenv("TMPDIR", folder), os.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "cache")))
}

// repeat runs the suites and compares the measurements, also after an interruption.
func (s *soak) repeat(ctx context.Context, runs, nodeEvery int) (err error) {
	_, _ = fmt.Fprintln(s.out, header)
	var after []figures
	defer func() {
		if err == nil || len(after) > 0 {
			err = errors.Join(err, compare(s.out, after))
		}
	}()
	for i := 1; i <= runs; i++ {
		measured, err := s.once(ctx, "--kubeconfig", s.kubeconfig)
		if err != nil {
			return fmt.Errorf("run %d of %d: %w", i, runs, err)
		}
		_, _ = fmt.Fprintln(s.out, measured.row(strconv.Itoa(i)))
		after = append(after, measured)
		if nodeEvery > 0 && i%nodeEvery == 0 {
			measured, err := s.once(ctx, "--provider", "embedded", "--nodes", "auto")
			if err != nil {
				return fmt.Errorf("run with a node after run %d: %w", i, err)
			}
			_, _ = fmt.Fprintln(s.out, measured.row("node"))
		}
	}
	return nil
}

// once runs the suites once, and measures when everything that the run started has ended.
func (s *soak) once(ctx context.Context, cluster ...string) (figures, error) {
	began := time.Now()
	command := exec.CommandContext(ctx, s.binary, append(append(cluster, "--quiet"), s.arguments...)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = downTime
	said, err := command.CombinedOutput()
	if err != nil {
		return figures{}, fmt.Errorf("%w\n%s", err, said)
	}
	took := time.Since(began)
	measured, err := s.settled(ctx)
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		measured.runnerMemory = usage.Maxrss << 10 // the maximum of the runner and its workers
	}
	measured.took = took
	return measured, err
}

// settled measures when no run is active.
func (s *soak) settled(ctx context.Context) (figures, error) {
	var measured figures
	err := wait.PollUntilContextTimeout(ctx, polling, restTime, true, func(ctx context.Context) (bool, error) {
		var err error
		measured, err = s.measure(ctx)
		return measured.workers == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil // the comparison reports remaining processes
	}
	return measured, err
}
