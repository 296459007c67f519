// Command soak runs the suites many times in a row against one cluster that is kept, and every so often on one with a real
// node, and shows that nothing grows: memory, open files, metrics, processes, temporary files, objects. Its table has a row a run.
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

// soak is one series of runs.
type soak struct {
	// binary is the runner, and folder where the runs leave their temporary files.
	binary, folder string
	kubeconfig     string
	config         *rest.Config
	// arguments are what each run is called with besides the cluster.
	arguments []string
	out       io.Writer
}

const (
	// upTime is how long the cluster may take to come up, and downTime to go.
	upTime, downTime = 2 * time.Minute, time.Minute
	// restTime is how long what a run has started may take to be gone after it.
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

// up keeps a cluster, and says how to remove it.
func (s *soak) up(ctx context.Context) (down func() error, err error) {
	s.kubeconfig = filepath.Join(s.folder, "kubeconfig")
	command := exec.Command(s.binary, "cluster", "up", "--node", "none", "--write-kubeconfig", s.kubeconfig)
	command.Env, command.Stderr = s.environment(), os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interruption ends the runs first
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("keep a cluster: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // it is interrupted, which it calls no success
		close(ended)
	}()
	down = func() error {
		_ = command.Process.Signal(os.Interrupt) // it may have ended
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

// repeat runs the suites and tests what was measured, also of fewer runs when it is interrupted.
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
			measured, err := s.once(ctx, "--provider", "local", "--node", "auto")
			if err != nil {
				return fmt.Errorf("run with a node after run %d: %w", i, err)
			}
			_, _ = fmt.Fprintln(s.out, measured.row("node"))
		}
	}
	return nil
}

// once runs the suites once, and measures when what the run has started is gone.
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
	if usage, is := command.ProcessState.SysUsage().(*syscall.Rusage); is {
		measured.runnerMemory = usage.Maxrss << 10 // of the runner, or of the worker that took most
	}
	measured.took = took
	return measured, err
}

// environment is that of each run: temporary files go where they can be counted, but for those of Go, where a run builds kubectl.
func (s *soak) environment() []string {
	environment := append(os.Environ(), "TMPDIR="+s.folder, "XDG_CACHE_HOME="+filepath.Join(s.folder, "cache"))
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		environment = append(environment, "GOCACHE="+filepath.Join(cache, "go-build"))
	}
	return environment
}

// settled measures once no run is at work any more.
func (s *soak) settled(ctx context.Context) (figures, error) {
	var measured figures
	err := wait.PollUntilContextTimeout(ctx, polling, restTime, true, func(ctx context.Context) (bool, error) {
		var err error
		measured, err = s.measure(ctx)
		return measured.workers == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil // the comparison says that processes stay
	}
	return measured, err
}
