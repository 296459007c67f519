// Package conformance tests how an API server handles deletion, from a project's own Go tests.
//
// Operators, aggregated API servers and other storage backends have kinds that this project does not know. The behaviors of every resource
// (finalizers, preconditions, dry-run, collections, watches, owners and dependents, admission) can be tested on those kinds. [Run] does what
// the command `runner --resource` does, on the cluster of a [rest.Config], and returns the report. [Test] runs a subtest for each
// behavior:
//
//	func TestWidgetDeletion(t *testing.T) {
//		conformance.Test(t, config, conformance.Options{Resources: []string{"widgets.example.com"}})
//	}
//
// It requires only an API server: controller-runtime's envtest, kind, or a shared cluster. Package conformance/controlplane starts one with
// the garbage collector and the namespace controller, which envtest lacks. Behaviors that require a missing controller or permission are
// skipped with that reason. All objects are in namespaces of the run, carry its id, and are deleted at the end. The directory examples
// contains complete tests.
//
// # A separate package
//
// The behaviors are Ginkgo specs, and every importer of this package has them in its tree. A test package with its own Ginkgo specs would
// run them, too, so put the conformance test into a package without any.
//
// # Processes
//
// Behaviors run in parallel in worker processes, so that one that hangs affects no other, and because Ginkgo runs only once in a process.
// The workers are the program that calls Run, started again with an environment variable that this package checks in an init function. In
// such a process the init function runs the worker and exits.
//
// A hook in TestMain would be more visible. But a test binary without it would run all its tests in each worker, which start more workers,
// and one with it would first initialize all packages of the test, with the Ginkgo specs that they define. With the init function no hook
// can be forgotten, and no code of the importing program runs in a worker.
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
	"github.com/deletion-conformance/deletion-conformance/internal/engine/manifest"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/knownfailures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/overlay"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
	runner "github.com/deletion-conformance/deletion-conformance/internal/run"
	"github.com/deletion-conformance/deletion-conformance/provider"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

// ErrNonconformant means that behaviors failed. The error names them; the report has the reasons.
var ErrNonconformant = errors.New("not conformant")

// ErrKubectlNonconformant means that no behavior of the cluster failed, and that behaviors of kubectl did.
var ErrKubectlNonconformant = errors.New("kubectl is not conformant")

// ErrKnownFailuresOutdated means that no behavior failed, and that one of the KnownFailures passed, or that its date is over.
var ErrKnownFailuresOutdated = errors.New("known failures outdated")

// ErrInconclusive means that nothing failed, but that not all selected behaviors ran: the cluster could not be tested, behaviors
// errored, or the context was canceled.
var ErrInconclusive = errors.New("inconclusive")

// Options of a run. The zero value runs all behaviors on Kubernetes' own kinds.
type Options struct {
	// Name is the name of the cluster in the report; "cluster" if empty.
	Name string
	// Resources are resources to test with the behaviors of every resource, in kubectl's notation: "widgets.example.com", or with the
	// version, "widgets.example.com/v1". Each is an element of the report's Clusters. If empty, the whole catalog is tested on
	// Kubernetes' own kinds.
	Resources []string
	// AllResources also tests all other resources that can be created and deleted without consequences, which excludes nodes, roles and the
	// like. The report's LeftOut contains the reasons for excluding others.
	AllResources bool
	// Fixtures are manifests: objects of the Resources, which are otherwise derived from the published schemas, and before them their
	// prerequisites. Only copies with unique names are created. See ReadFixtures.
	Fixtures []*unstructured.Unstructured
	// Controller is the Deployment of the resource's controller in kubectl's notation, "deploy/widget-operator"; it requires exactly one
	// resource. How it handles finalizers and children is tested, too. If Disruptive is set, it is scaled to 0 for a while.
	// ControllerNamespace is the namespace of the Deployment.
	Controller, ControllerNamespace string
	// RunController runs the controller of the resource, of which there must be exactly one, in this process until its context is
	// canceled, as Start of controller-runtime's managers does. It is called when the run starts, and again when the controller is to
	// start after it was stopped, so it must create a new manager each time, with Controller.SkipNameValidation: otherwise
	// controller-runtime accepts the name of a controller only once in a process. It replaces Controller, which must be empty.
	RunController func(context.Context) error
	// Suites and LabelFilter select behaviors: a suite is the first part of ids, such as "finalizers", and the filter is Ginkgo's, for ids,
	// levels and features, such as "features: isEmpty". Slow includes behaviors that wait about a minute for the cluster's clock.
	Suites      []string
	LabelFilter string
	Slow        bool
	// Unsupported maps features that the cluster is known not to have to the reasons. They are not probed, which would take 10 seconds for
	// a missing controller.
	Unsupported map[v1alpha1.Feature]string
	// Namespace is the only namespace to use: the run creates nothing outside it. If empty the run creates namespaces.
	Namespace string
	// Labels and Annotations are added to every object that the run creates, including pod templates, and NamespaceLabels to its
	// namespaces, to satisfy the policies of the cluster.
	Labels, Annotations, NamespaceLabels map[string]string
	// PodOverlay is a strategic merge patch for every pod and pod template that the run creates, as JSON values; nil for none. It may set
	// tolerations, nodeSelector, securityContext, runtimeClassName and others, but nothing that behaviors test. See ReadPodOverlay.
	PodOverlay map[string]any
	// Processes is the number of behaviors that run in parallel; if 0, 4 for each processor and at most 8, or more on a cluster
	// with a large network distance.
	Processes int
	// Timeout limits a behavior, WaitTimeout is how long it waits for something that must happen, and Settle how long it keeps watching for
	// something that must not. If 0 they are 7 minutes, 30 seconds and half a second, or longer on a slow cluster.
	Timeout, WaitTimeout, Settle time.Duration
	// CleanupTimeout limits the deletion of the run's objects at its end, including waiting for finalizers of other controllers; 90 seconds
	// if 0, or longer on a slow cluster.
	CleanupTimeout time.Duration
	// KeepFailed keeps the objects of failed behaviors in their namespaces; Kept in the report lists them, with the command that deletes them.
	// Quotas, cluster-scoped objects and others that affect more than these namespaces are deleted. It requires Namespace to be empty.
	KeepFailed bool
	// Disruptive also runs behaviors that temporarily affect others on the cluster.
	Disruptive bool
	// OwnCluster states that the cluster was created for this run and is deleted after it, as an envtest is: behaviors may then delete what
	// others would miss, such as the CustomResourceDefinition of the resource with its objects.
	OwnCluster bool
	// NoCreate creates nothing: only behaviors that need only reads and dry-runs are tested, in the namespace default or in Namespace.
	NoCreate bool
	// KnownFailures are failures that do not fail the run. It fails if one of them passes, or fails after its date. See ReadKnownFailures.
	KnownFailures []KnownFailure
	// Strict counts deviations of observed behaviors as failures.
	Strict bool
	// ReportDir is a directory for junit.xml, ctrf.json, report.json, report.html and summary.md, which is created if necessary; empty for none.
	ReportDir string
	// Output receives the progress, a line for each behavior; nil for none. Use the Output of a testing.T.
	Output io.Writer
}

// ReadFixtures reads the manifests in a file of YAML or JSON. It fails when a document is not a manifest, and when there is none.
func ReadFixtures(file string) ([]*unstructured.Unstructured, error) { return manifest.Documents(file) }

// ReadPodOverlay reads a pod patch from a file of YAML or JSON.
func ReadPodOverlay(file string) (map[string]any, error) {
	patch, err := overlay.ReadPod(file)
	if err != nil {
		return nil, fmt.Errorf("read the pod overlay %s: %w", file, err)
	}
	return patch, nil
}

// KnownFailure is a behavior that is known to fail.
type KnownFailure struct {
	// ID is the id of the behavior, such as "cascade.foreground.circle".
	ID string
	// Resource is the one of Resources on which it fails, in all versions if it has no version. Empty means all resources.
	Resource string
	// Reason is why it fails. It is required.
	Reason string
	// Until is the last day, in UTC, on which it may fail, as 2026-12-31; empty for no end.
	Until string
}

// ReadKnownFailures returns the known failures in a YAML or JSON file, in the format of `runner --known-failures`.
func ReadKnownFailures(file string) ([]KnownFailure, error) {
	list, err := knownfailures.Read(file)
	if err != nil {
		return nil, fmt.Errorf("read the known failures %s: %w", file, err)
	}
	var known []KnownFailure
	for _, entry := range list {
		known = append(known, KnownFailure(entry))
	}
	return known, nil
}

// Run tests the selected behaviors on the cluster of a configuration. The configuration is passed to other processes, so it must not
// contain functions that dial or wrap requests (Dial, Transport, WrapTransport).
//
// The error is nil if the cluster conforms except for known failures, ErrNonconformant or ErrInconclusive if it does not or could not be
// tested, ErrKubectlNonconformant if only behaviors of kubectl failed, ErrKnownFailuresOutdated if KnownFailures no longer apply, and
// another one for invalid options, or when objects could not be deleted. With the former four there is a report, which contains every
// behavior of the catalog, including those that were not tested, with the reason.
//
// If the context is canceled the run ends early and deletes its objects. `runner cleanup` deletes the objects of a killed run.
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
	return options.withController(ctx, &front, func(ctx context.Context, begin func()) (v1alpha1.Report, error) { return test(ctx, front, begin) })
}

// withController runs a run, and the controller from when it begins on, if there is one.
func (o Options) withController(ctx context.Context, front *runner.Options, run func(ctx context.Context, begin func()) (v1alpha1.Report, error)) (v1alpha1.Report, error) {
	if o.RunController == nil {
		return run(ctx, func() {})
	}
	server, err := session.ListenForController()
	if err != nil {
		return v1alpha1.Report{}, err
	}
	front.Settings.Controller = server.Controller()
	ctx, cancel := context.WithCancelCause(ctx)
	whole, err := run(ctx, func() {
		starts := 0
		server.Serve(func(ctx context.Context) error {
			starts++
			return o.RunController(ctx)
		}, func(err error) {
			cancel(fmt.Errorf("RunController returned before the run ended (start %d): %w", starts, cmp.Or(err, errors.New("without an error"))))
		})
	})
	err = errors.Join(err, context.Cause(ctx), server.Close())
	cancel(nil)
	return whole, err
}

// ExploreOptions of an exploration.
type ExploreOptions struct {
	// Options are those of a run. Resources are explored instead of ConfigMaps; what is about behaviors has no effect.
	Options
	// For is how long the cluster is explored; 5 minutes if 0.
	For time.Duration
	// Clients is the number of concurrent clients; 6 if 0.
	Clients int
	// ReduceFor limits the search for fewer operations that break the same promise; 90 seconds if 0, and no search if negative.
	ReduceFor time.Duration
	// Seed is the random seed of the operations.
	Seed uint64
	// Scenario is objects, ownership, grace, nodes, namespaces, workloads or operator; objects if empty. Scenario operator is about the
	// operator of the resource, which RunController may run: it is then restarted at random moments.
	Scenario string
	// Inject are the faults to inject at random moments, as --inject of `runner explore`; "all" for those that the scenario and the cluster
	// permit. Most concern the requests of other users than that of the run, so RunController needs another user.
	Inject []string
	// Replay is a file with operations to run instead, as an exploration writes it into ReportDir; empty for none.
	Replay string
}

// Explore lets concurrent clients do random operations on the cluster that a configuration reaches, and checks what they see against a
// model of deletion, as `runner explore` does. The report has a result for each property. Errors are those of [Run].
func Explore(ctx context.Context, config *rest.Config, options ExploreOptions) (v1alpha1.Report, error) {
	whole, err := exploreCluster(ctx, config, options)
	if err != nil {
		err = fmt.Errorf("explore how a cluster handles deletion: %w", err)
	}
	return whole, err
}

func exploreCluster(ctx context.Context, config *rest.Config, options ExploreOptions) (v1alpha1.Report, error) {
	front, err := options.front(config)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	exploration := runner.NewExploration()
	exploration.For, exploration.Clients = cmp.Or(options.For, exploration.For), cmp.Or(options.Clients, exploration.Clients)
	exploration.ReduceFor = max(cmp.Or(options.ReduceFor, exploration.ReduceFor), 0)
	exploration.Seed, exploration.Replay, exploration.Inject = options.Seed, options.Replay, options.Inject
	exploration.Scenario = cmp.Or(options.Scenario, exploration.Scenario)
	return options.withController(ctx, &front, func(ctx context.Context, begin func()) (v1alpha1.Report, error) {
		return explore(ctx, front, exploration, begin)
	})
}

// explore explores with options of the runner. It calls begin when the options are valid.
func explore(ctx context.Context, front runner.Options, exploration runner.Exploration, begin func()) (v1alpha1.Report, error) {
	err := exploration.Complete(&front)
	if err == nil {
		err = front.Complete(ctx)
	}
	if err == nil {
		err = front.Validate()
	}
	if err != nil {
		return v1alpha1.Report{}, err
	}
	begin()
	whole, err := front.Explore(ctx, exploration)
	if whole.RunID == "" {
		return whole, err
	}
	return whole, errors.Join(concluded(whole), err)
}

// test runs the tests for options of the runner. It calls begin when the options are valid.
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
	return whole, errors.Join(concluded(whole), err)
}

// front converts the options to those of the runner.
func (o Options) front(config *rest.Config) (runner.Options, error) {
	front := runner.NewOptions()
	front.Version, front.Name, front.MakePlan = version(), fieldName, planned
	front.FindClusters = func() ([]clusters.Cluster, error) {
		cluster, err := clusters.FromRESTConfig(cmp.Or(o.Name, "cluster"), config)
		cluster.Provider = knownCluster{cluster.Provider, o.features()}
		return []clusters.Cluster{cluster}, err
	}
	front.Selection = plan.Selection{Suites: o.Suites, LabelFilter: o.LabelFilter, Slow: o.Slow}
	front.Resources = runner.Resources{Names: o.Resources, Fixtures: o.Fixtures, All: o.AllResources}
	front.Controller, front.ControllerNamespace = o.Controller, o.ControllerNamespace
	front.Processes, front.Timeout, front.CleanupTimeout = o.Processes, o.Timeout, o.CleanupTimeout
	front.Namespace, front.Strict, front.ReportDir = o.Namespace, o.Strict, o.ReportDir
	if o.Output != nil {
		front.Out = visible.NewLog(o.Output)
	}
	for _, known := range o.KnownFailures {
		front.KnownFailures = append(front.KnownFailures, knownfailures.Entry(known))
	}
	settings := &front.Settings
	settings.Settle, settings.WaitTimeout = o.Settle, o.WaitTimeout
	settings.Disruptive, settings.NoCreate, settings.KeepFailed = o.Disruptive, o.NoCreate, o.KeepFailed
	settings.Additions = session.Additions{Labels: o.Labels, Annotations: o.Annotations, NamespaceLabels: o.NamespaceLabels}
	return front, o.decodePodOverlay(&settings.PodOverlay)
}

// features are what the caller knows about the cluster.
func (o Options) features() provider.Features {
	features := provider.Features{Unsupported: o.Unsupported}
	if o.OwnCluster {
		features.Supported = []v1alpha1.Feature{v1alpha1.OwnCluster}
	}
	return features
}

// decodePodOverlay converts numbers to the types that they have when they are read from a file.
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

// fieldName returns the name of an option in messages instead of the runner's flag.
func fieldName(flag string) string {
	if field, ok := fields[flag]; ok {
		return field
	}
	words := strings.Split(flag, "-")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// fields are the names of fields that differ from their flags.
var fields = map[string]string{
	"procs": "Processes", "resource": "Resources", "fixture": "Fixtures", "label": "Labels", "annotation": "Annotations",
	"namespace-label": "NamespaceLabels",
}

// concluded returns nil if the run passed, and otherwise an error that lists the failures. Kubectl counts if the cluster is conformant.
func concluded(whole v1alpha1.Report) error {
	verdict, _ := whole.Verdict(v1alpha1.SubjectCluster)
	if kubectl, tested := whole.Verdict(v1alpha1.SubjectKubectl); tested && verdict.Conclusion.Passes() {
		return errorOf(whole, kubectl, ErrKubectlNonconformant)
	}
	return errorOf(whole, verdict, ErrNonconformant)
}

// errorOf returns the error for a verdict.
func errorOf(whole v1alpha1.Report, verdict v1alpha1.Verdict, nonconformant error) error {
	said := strings.Join(append([]string{verdict.Reason}, report.FailureLines(whole)...), "\n")
	switch verdict.Conclusion {
	case v1alpha1.Conformant, v1alpha1.ConformantExceptKnown:
		return nil
	case v1alpha1.Nonconformant:
		return fmt.Errorf("%w: %s", nonconformant, said)
	case v1alpha1.KnownFailuresOutdated:
		return fmt.Errorf("%w: %s", ErrKnownFailuresOutdated, said)
	}
	return fmt.Errorf("%w (%s): %s", ErrInconclusive, verdict.Conclusion, said)
}
