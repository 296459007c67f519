package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// reportFile is the file descriptor of a worker's messages: the first one after standard error.
const reportFile = 3

// Main is a worker: it reads a job from standard input, runs its specs and reports each. It also reports errors before the first spec; the
// returned error is for the exit code.
func Main() error { return crash.Caught("run a worker", func() error { return work(os.Stdin) }) }

func work(input io.Reader) error {
	output := os.NewFile(reportFile, "reports")
	if output == nil {
		return errors.New("only the runner starts workers: see `runner --help`")
	}
	syscall.CloseOnExec(reportFile) // children of specs must not keep the runner waiting
	job, answers := Job{}, json.NewDecoder(input)
	if err := answers.Decode(&job); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	runner := &runner{output: output, loans: make(chan loan)}
	session, err := runner.connect(job)
	if err != nil {
		return errors.Join(err, send(output, message{Failed: err.Error()}))
	}
	defer session.Close()
	go runner.listen(answers, session)
	run(job, session, output)
	return nil
}

// runner is the process that has started the worker.
type runner struct {
	output io.Writer
	// borrowing is held until the runner has answered.
	borrowing sync.Mutex
	loans     chan loan
}

// listen passes on the runner's answers. It ends the worker and its children when they end: the runner is gone then, and the worker must not
// write to a cluster any longer.
func (r *runner) listen(answers *json.Decoder, session *session.Session) {
	for {
		answer := loan{}
		if answers.Decode(&answer) != nil {
			session.Abandon()
			os.Exit(1)
		}
		r.loans <- answer
	}
}

// lend gets a credential from the runner.
func (r *runner) lend(rejected int) (credentials.Credential, error) {
	r.borrowing.Lock()
	defer r.borrowing.Unlock()
	report(r.output, message{Borrows: &borrows{rejected}})
	answer := <-r.loans
	if answer.Failed != "" {
		return credentials.Credential{}, credentials.Failed(answer.Failed)
	}
	return answer.Credential, nil
}

// connect connects to the cluster, and reports each credential before it is sent.
func (r *runner) connect(job Job) (*session.Session, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(job.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = job.RequestTimeout
	clusters.Noting(config, func(credential string) { report(r.output, message{Sent: credential}) })
	credentials.Borrow(config, r.lend)
	return session.Connect(config, job.Session)
}

// run runs the batch with Ginkgo. Its exit code does not matter, because the reports contain everything. Ginkgo also reports the other specs
// of the same files; they are dropped.
func run(job Job, session *session.Session, output io.Writer) {
	batch := sets.New(job.Behaviors...)
	specs.BuildOnly(job.Files)
	ginkgo.ReportBeforeEach(func(spec types.SpecReport) {
		if behavior, ok := specs.BehaviorOf(spec); ok && batch.Has(behavior.ID) && !spec.State.Is(types.SpecStateSkipped) {
			report(output, message{Began: behavior.ID})
		}
	})
	ginkgo.ReportAfterEach(func(spec types.SpecReport) {
		if behavior, ok := specs.BehaviorOf(spec); ok && batch.Has(behavior.ID) {
			ended, evidence := specs.Detached(spec)
			report(output, message{Ended: &ended, Evidence: evidence})
		}
	})
	config, reporter := ginkgo.GinkgoConfiguration()
	config.LabelFilter = plan.LabelFilter(job.Behaviors)
	reporter.Succinct, reporter.NoColor = true, true
	// The timeout comes first, so that it also ends waits with the context that the session remembers.
	ginkgo.RunSpecs(silent{}, "deletion conformance", config, reporter, bounded(job), session.Decorate())
}

// report sends a message. If the runner is gone, the worker exits.
func report(output io.Writer, m message) {
	if err := send(output, m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bounded applies the job's timeout to every node of a spec.
func bounded(job Job) types.AroundNodeDecorator {
	return ginkgo.AroundNode(func(ctx context.Context, body func(context.Context)) {
		limit := fmt.Errorf("the behavior took longer than %s (--timeout)", job.Timeout)
		ctx, cancel := context.WithTimeoutCause(ctx, job.Timeout, limit)
		defer cancel()
		body(ctx)
	})
}

// silent receives Ginkgo's failure of a suite.
type silent struct{}

func (silent) Fail() {}
