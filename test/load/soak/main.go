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
	"k8s.io/client-go/tools/clientcmd"
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
	// upTime limits how long the cluster may take to start, and downTime to stop.
	upTime, downTime = 2 * time.Minute, time.Minute
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
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	s := &soak{binary: binary, folder: folder, arguments: arguments, out: os.Stdout}
	down, err := s.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down()) }()
	return s.repeat(ctx, runs, nodeEvery)
}

// up starts a cluster, and returns a function that removes it.
func (s *soak) up(ctx context.Context) (down func() error, err error) {
	s.kubeconfig = filepath.Join(s.folder, "kubeconfig")
	command := exec.Command(s.binary, "cluster", "up", "--nodes", "0", "--write-kubeconfig", s.kubeconfig)
	command.Env, command.Stderr = s.environment(), os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interruption ends the runs first
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("keep a cluster: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // it is interrupted, which it reports as an error
		close(ended)
	}()
	down = func() error {
		_ = command.Process.Signal(os.Interrupt) // it may have ended already
		select {
		case <-ended:
			return nil
		case <-time.After(downTime):
			return fmt.Errorf("the cluster did not end within %s", downTime)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, polling, upTime, true, func(context.Context) (bool, error) {
		s.config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig)
		return err == nil, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep a cluster: none after %s: %w", upTime, err), down())
	}
	s.config.WarningHandler = rest.NoWarnings{}
	return down, nil
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
			measured, err := s.once(ctx, "--provider", "local", "--nodes", "auto")
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
	command.Env = s.environment()
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

// environment is the environment of each run: its temporary files can be counted, except those of Go when a run builds kubectl.
func (s *soak) environment() []string {
	environment := append(os.Environ(), "TMPDIR="+s.folder, "XDG_CACHE_HOME="+filepath.Join(s.folder, "cache"))
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		environment = append(environment, "GOCACHE="+filepath.Join(cache, "go-build"))
	}
	return environment
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
