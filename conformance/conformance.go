// Package conformance tests how an API server handles deletion, from a project's own Go tests.
//
// Operators, aggregated API servers and whoever stores objects in a way of their own have kinds that this project does
// not know. What every resource promises when it is deleted (held and released by finalizers, preconditions, dry-run,
// collections, watches, owners and dependents, admission) can be tested on those kinds nevertheless. [Run] does what
// the command `runner --resource` does, on the cluster of a [rest.Config], and returns the report. [Test] makes a subtest of each
// behavior:
//
//	func TestWidgetsAreDeletedAsKubernetesPromises(t *testing.T) {
//		conformance.Test(t, config, conformance.Options{Resources: []string{"widgets.example.com"}})
//	}
//
// It needs an API server and nothing else: controller-runtime's envtest will do, and so will kind or a cluster that
// others use, too. Package conformance/controlplane starts one with the garbage collector and the namespace controller, which
// envtest lacks. What needs a controller that is not there, or a permission that the credentials lack, is skipped
// with that reason. Everything that is made is in namespaces of its own, carries the run's id, and is gone at the end.
// The folder examples has whole tests.
//
// # A package of its own
//
// The behaviors are Ginkgo specs, and whatever imports this package has them in its tree. A test package that runs
// Ginkgo specs of its own would run them, too, so put the conformance test into a package without any.
//
// # Processes
//
// Behaviors run in parallel in worker processes, so that one that hangs affects no other, and because Ginkgo runs once in
// a process. The workers are the program that calls Run, started again with an environment variable that this package checks
// in an init function. In such a process the init function runs the worker and exits.
//
// A hook in TestMain would be easier to see. But a test binary without it would run all its tests in each worker, which start
// more workers, and one with it would first initialize all packages of the test, with the Ginkgo specs that they define. With the
// init function there is nothing to forget, and no code of the program that imports this package runs in a worker.
package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/manifest"
	"github.com/deletion-conformance/deletion-conformance/framework/overlay"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	runner "github.com/deletion-conformance/deletion-conformance/internal/run"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

// ErrNonconformant means that behaviors failed. The error names them; the report has the reasons.
var ErrNonconformant = errors.New("not conformant")

// ErrKubectlNonconformant means that no behavior of the cluster failed, and that behaviors of kubectl did.
var ErrKubectlNonconformant = errors.New("kubectl is not conformant")

// ErrInconclusive means that nothing failed, but that not all selected behaviors ran: the cluster could not be tested, behaviors
// errored, or the context was cancelled.
var ErrInconclusive = errors.New("inconclusive")

// Options of a run. The zero value runs all behaviors on Kubernetes' own kinds.
type Options struct {
	// Name is what the report calls the cluster; "cluster" if empty.
	Name string
	// Resources are tested by what every resource promises, each of them, named as for kubectl: "widgets.example.com", or with the
	// version, "widgets.example.com/v1". Each is an element of the report's Clusters. None tests the whole catalogue on Kubernetes'
	// own kinds.
	Resources []string
	// AllResources tests all others, too, that the server ignores created and deleted, but for those that rule over a
	// cluster, such as nodes and roles. The report's LeftOut says why others are left out.
	AllResources bool
	// Fixtures are manifests: an object of each of the Resources of which none is to be derived from the schema that the server
	// publishes, and before it what must exist for that. Only copies are made, under names of the run's own. See ReadFixtures.
	Fixtures []*unstructured.Unstructured
	// Controller is the Deployment that runs the controller of the resource, of which there is one then, as kubectl
	// takes it: "deploy/widget-operator". What it does about finalizers and about what it makes is tested, too. Where
	// Disruptive allows that, it is scaled to 0 for a while. ControllerNamespace is the Deployment's.
	Controller, ControllerNamespace string
	// RunController runs the controller of the resource, of which there is one then, in this process until its context is cancelled,
	// as Start of controller-runtime's managers does. It is called when the run begins, and again when the controller is to start after
	// it was stopped, so it makes a new manager each time. What is tested is what is tested of Controller, which is empty then.
	RunController func(context.Context) error
	// Suites and LabelFilter choose behaviors: a suite is the first part of ids, such as "finalizers", and the filter
	// is Ginkgo's, on ids, levels and needs, such as "needs: isEmpty". Slow takes those, too, that wait a minute or so
	// for the cluster's own clock.
	Suites      []string
	LabelFilter string
	Slow        bool
	// Unsupported says of needs that the cluster is known not to meet why not. They are not looked for, which takes 10 seconds of a
	// controller that is not there.
	Unsupported map[v1alpha1.Feature]string
	// Namespace is the only one to use: the run makes nothing outside. If empty it makes namespaces of its own.
	Namespace string
	// Labels and Annotations are added to everything that the run creates, pod templates included, and NamespaceLabels to the
	// namespaces that it creates: what the policies of the cluster require.
	Labels, Annotations, NamespaceLabels map[string]string
	// PodOverlay is a strategic merge patch for every pod and pod template that the run creates, with the values of JSON; nil for
	// none. It may set tolerations, nodeSelector, securityContext, runtimeClassName and the like, but nothing that behaviors
	// are about. See ReadPodOverlay.
	PodOverlay map[string]any
	// Processes is how many behaviors are tested at the same time; if 0, 4 a processor and 8 at most.
	Processes int
	// Timeout bounds a behavior, WaitTimeout is how long it waits for something that must happen, and Settle how long
	// it goes on watching for something that must not. If 0 they are 7 minutes, 30 seconds and half a second, or longer
	// where the cluster is slow.
	Timeout, WaitTimeout, Settle time.Duration
	// Disruptive tests also what disturbs others on the cluster for a while.
	Disruptive bool
	// NoCreate creates nothing: only what shows in reads and dry-runs is tested, in the namespace default or the one of Namespace.
	NoCreate bool
	// Strict counts deviations from what upstream is only observed to do as failures.
	Strict bool
	// ReportDir is a folder for junit.xml, report.json, report.html and summary.md, which is made if need be; empty for none.
	ReportDir string
	// Output is told what happens, a line a behavior; nil for nobody. Use the Output of a testing.T.
	Output io.Writer
}

// ReadFixtures are the manifests in a file of YAML or JSON, one after the other. It fails for what is no manifest, and
// where there is none.
func ReadFixtures(file string) ([]*unstructured.Unstructured, error) { return manifest.Documents(file) }

// ReadPodOverlay is the patch of pods in a file of YAML or JSON.
func ReadPodOverlay(file string) (map[string]any, error) {
	patch, err := overlay.ReadPod(file)
	if err != nil {
		return nil, fmt.Errorf("read the pod overlay %s: %w", file, err)
	}
	return patch, nil
}

// Run tests the chosen behaviors on the cluster that a configuration reaches. The configuration is handed to other
// processes, so it may not have functions that dial or wrap requests (Dial, Transport, WrapTransport).
//
// The error is nil if the cluster conforms, ErrNonconformant or ErrInconclusive if it does not or could not be tested,
// ErrKubectlNonconformant if only behaviors of kubectl failed, and any other one for options that cannot be used, or for what the run could not remove. The report is there with the
// former three, and has every behavior of the catalogue, also those that were not tested, with the reason.
//
// Where the context is cancelled the run ends early and removes what it made. What a run leaves that was killed, `runner cleanup`
// removes.
func Run(ctx context.Context, config *rest.Config, options Options) (v1alpha1.Report, error) {
	whole, err := run(ctx, config, options)
	if err != nil {
		err = fmt.Errorf("test how a cluster handles deletion: %w", err)
	}
	return whole, err
}

func run(ctx context.Context, config *rest.Config, options Options) (v1alpha1.Report, error) {
	front, err := options.front(config)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	if options.RunController == nil {
		return test(ctx, front, func() {})
	}
	server, err := session.ListenForController()
	if err != nil {
		return v1alpha1.Report{}, err
	}
	front.Settings.Controller = server.Controller()
	ctx, cancel := context.WithCancelCause(ctx)
	whole, err := test(ctx, front, func() {
		server.Serve(options.RunController, func(err error) {
			cancel(fmt.Errorf("RunController returned before the run ended: %w", cmp.Or(err, errors.New("without an error"))))
		})
	})
	err = errors.Join(err, context.Cause(ctx), server.Close())
	cancel(nil)
	return whole, err
}

// test tests what the options of the runner ask for. It calls begin once they turned out to be usable.
func test(ctx context.Context, front runner.Options, begin func()) (v1alpha1.Report, error) {
	err := front.Complete(ctx)
	if err == nil {
		err = front.Validate()
	}
	if err != nil {
		return v1alpha1.Report{}, err
	}
	begin()
	whole, err := front.Run(ctx)
	if whole.RunID == "" {
		return whole, err
	}
	whole = report.Concluded(figures.Measure(whole))
	return whole, errors.Join(concluded(whole), err)
}

// front are the options of the runner that these are.
func (o Options) front(config *rest.Config) (runner.Options, error) {
	front := runner.NewOptions()
	front.Version, front.Name, front.MakePlan = version(), fieldName, planned
	front.FindClusters = func() ([]clusters.Cluster, error) {
		cluster, err := clusters.FromRESTConfig(cmp.Or(o.Name, "cluster"), config)
		cluster.Provider = known{cluster.Provider, o.Unsupported}
		return []clusters.Cluster{cluster}, err
	}
	front.Selection = plan.Selection{Suites: o.Suites, LabelFilter: o.LabelFilter, Slow: o.Slow}
	front.Resources = runner.Resources{Names: o.Resources, Fixtures: o.Fixtures, All: o.AllResources}
	front.Controller, front.ControllerNamespace = o.Controller, o.ControllerNamespace
	front.Processes = cmp.Or(o.Processes, front.Processes)
	front.Timeout, front.FixedTimeout = cmp.Or(o.Timeout, front.Timeout), o.Timeout != 0
	front.Namespace, front.Strict, front.ReportDir = o.Namespace, o.Strict, o.ReportDir
	if o.Output != nil {
		front.Out = o.Output
	}
	settings := &front.Settings
	settings.Settle, settings.FixedSettle = cmp.Or(o.Settle, settings.Settle), o.Settle != 0
	settings.WaitTimeout, settings.FixedWait = cmp.Or(o.WaitTimeout, settings.WaitTimeout), o.WaitTimeout != 0
	settings.Disruptive, settings.NoCreate = o.Disruptive, o.NoCreate
	settings.Labels, settings.Annotations, settings.NamespaceLabels = o.Labels, o.Annotations, o.NamespaceLabels
	return front, o.decodePodOverlay(&settings.PodOverlay)
}

// decodePodOverlay gives numbers the types that they have when they are read from a file.
func (o Options) decodePodOverlay(into *map[string]any) error {
	if len(o.PodOverlay) == 0 {
		return nil
	}
	encoded, err := json.Marshal(o.PodOverlay)
	if err == nil {
		*into, err = overlay.DecodePod(encoded)
	}
	if err != nil {
		return fmt.Errorf("PodOverlay: %w", err)
	}
	return nil
}

// fieldName is the field of Options that messages call instead of a flag of the runner.
func fieldName(flag string) string {
	if field, is := fields[flag]; is {
		return field
	}
	words := strings.Split(flag, "-")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// fields are the fields that are not called as their flags.
var fields = map[string]string{
	"procs": "Processes", "resource": "Resources", "fixture": "Fixtures", "label": "Labels", "annotation": "Annotations",
	"namespace-label": "NamespaceLabels",
}

// concluded is nil if the run passed, and otherwise names the failures. Kubectl counts if the cluster is conformant.
func concluded(whole v1alpha1.Report) error {
	verdict := report.VerdictOf(whole)
	if kubectl, tested := report.KubectlVerdictOf(whole); tested && (verdict.Conclusion == report.Conformant || verdict.Conclusion == report.NotTested) {
		return errorOf(whole, kubectl, ErrKubectlNonconformant)
	}
	return errorOf(whole, verdict, ErrNonconformant)
}

// errorOf is the error that a verdict means.
func errorOf(whole v1alpha1.Report, verdict report.Verdict, nonconformant error) error {
	said := strings.Join(append([]string{verdict.Reason}, report.Unmet(whole)...), "\n")
	switch verdict.Conclusion {
	case report.Conformant:
		return nil
	case report.Nonconformant:
		return fmt.Errorf("%w: %s", nonconformant, said)
	}
	return fmt.Errorf("%w (%s): %s", ErrInconclusive, verdict.Conclusion, said)
}
