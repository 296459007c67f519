package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

const (
	// waitTimeout is the timeout for expected events. On an idle machine they need seconds, and with a load of 25 more than a minute.
	waitTimeout = 3 * time.Minute
	// polling is the interval for checking.
	polling = 20 * time.Millisecond
)

// running is a started runner.
type running struct {
	t           *testing.T
	command     *exec.Cmd
	out, errOut output
	reports     string
	started     time.Time
	ended       chan struct{}
}

// output is the output of a process so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(content []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(content)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// emptyEnvironment is the environment of a user without a kubeconfig who has never run the runner.
func emptyEnvironment(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CACHE_HOME=" + filepath.Join(home, "cache"), "TMPDIR=" + home}
}

// start starts the runner.
func start(t *testing.T, environment []string, arguments ...string) *running {
	t.Helper()
	return startWith(t, built.runner, environment, arguments...)
}

// startWith starts a runner.
func startWith(t *testing.T, runner string, environment []string, arguments ...string) *running {
	t.Helper()
	r := &running{t: t, started: time.Now(), ended: make(chan struct{})}
	r.command = exec.CommandContext(t.Context(), runner, arguments...)
	r.command.Env, r.command.Stdout, r.command.Stderr = environment, &r.out, &r.errOut
	r.command.WaitDelay = waitTimeout
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.command.Wait() // its state contains how it ended
		close(r.ended)
	}()
	return r
}

// startRun starts a run with its own report directory.
func startRun(t *testing.T, arguments ...string) *running {
	t.Helper()
	return startRunIn(t, emptyEnvironment(t), arguments...)
}

// startRunIn is startRun in an environment.
func startRunIn(t *testing.T, environment []string, arguments ...string) *running {
	t.Helper()
	reports := filepath.Join(t.TempDir(), "reports")
	r := start(t, environment, append(arguments, "--report-dir", reports)...)
	r.reports = reports
	return r
}

// signal sends the runner a signal.
func (r *running) signal(signal syscall.Signal) {
	r.t.Helper()
	if err := r.command.Process.Signal(signal); err != nil {
		r.t.Fatal(err)
	}
}

// outcome is the result of a runner.
type outcome struct {
	code        int
	out, errOut string
	took        time.Duration
	reports     string
}

// wait waits for the end of the runner.
func (r *running) wait() outcome {
	r.t.Helper()
	<-r.ended
	o := outcome{
		code: r.command.ProcessState.ExitCode(), out: r.out.String(), errOut: r.errOut.String(),
		took: time.Since(r.started), reports: r.reports,
	}
	r.t.Logf("runner %s: exit %d after %s\n%s%s", strings.Join(r.command.Args[1:], " "), o.code, o.took.Round(time.Millisecond), o.out, o.errOut)
	return o
}

// cluster reads the run's report.json, which must contain one cluster, and checks that all output of the run covers the whole catalog.
func (o outcome) cluster(t *testing.T) v1alpha1.Cluster {
	t.Helper()
	g := NewWithT(t)
	whole := o.report(t)
	g.Expect(whole.Clusters).To(HaveLen(1))
	var named []string
	selected := 0
	for _, result := range whole.Clusters[0].Results {
		named = append(named, result.ID)
		if result.Outcome != v1alpha1.Filtered {
			selected++
		}
	}
	g.Expect(named).To(Equal(catalog(t)), "report.json names every behavior")
	g.Expect(o.inJUnit(t)).To(HaveLen(selected), "junit.xml names every selected one")
	o.counted(t)
	return whole.Clusters[0]
}

func (o outcome) report(t *testing.T) v1alpha1.Report {
	t.Helper()
	read, err := report.Read(filepath.Join(o.reports, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// reasons returns the behaviors of a cluster with an outcome, with their reasons.
func reasons(cluster v1alpha1.Cluster, outcome v1alpha1.Outcome) map[string]string {
	reasons := map[string]string{}
	for _, result := range cluster.Results {
		if result.Outcome == outcome {
			reasons[result.ID] = result.Reason
		}
	}
	return reasons
}

// failures are the behaviors of a run that did not end as they should, and why.
func (o outcome) failures(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for _, cluster := range o.report(t).Clusters {
		for _, result := range cluster.Results {
			switch {
			case result.Failure != nil:
				fmt.Fprintf(&lines, "%s %s: %s\n", result.Outcome, result.ID, result.Failure.Message)
			case result.Outcome == v1alpha1.Errored || result.Outcome == v1alpha1.Interrupted:
				fmt.Fprintf(&lines, "%s %s: %s\n", result.Outcome, result.ID, result.Reason)
			}
		}
	}
	return lines.String()
}

// listed are the ids in the output of `runner list`, which runs once.
var listed = sync.OnceValues(func() ([]string, error) {
	content, err := exec.Command(built.runner, "list", "--output", "json").Output()
	if err != nil {
		return nil, err
	}
	var behaviors []v1alpha1.Behavior
	err = json.Unmarshal(content, &behaviors)
	ids := make([]string, len(behaviors))
	for i, behavior := range behaviors {
		ids[i] = behavior.ID
	}
	return ids, err
})

// catalog returns the ids of all behaviors, sorted.
func catalog(t *testing.T) []string {
	t.Helper()
	ids, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
