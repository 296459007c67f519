package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/manifest"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
	"github.com/deletion-conformance/deletion-conformance/internal/knownfailures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
)

// Options configure a run. A front end starts with NewOptions, sets them, and calls Complete, Validate and Run or Preflight, in this order.
// Errors of Complete and Validate are input errors.
type Options struct {
	// Version is the runner's version, for the report.
	Version string
	// Name returns the name of a flag's option in messages, such as "--wait-timeout" for "wait-timeout".
	Name func(flag string) string
	// FindClusters finds the clusters to test; nil when CreateCluster creates one.
	FindClusters func() ([]clusters.Cluster, error)
	// CreateCluster creates a cluster for the run, and returns a function that removes it.
	CreateCluster func(context.Context, plan.Plan) (cluster clusters.Cluster, remove func(), err error)
	// RunID is the id of the run; empty for a random one. A run with a given id first removes what an earlier attempt with that id left on
	// its clusters.
	RunID string
	// Kubeconfigs are the paths of kubeconfig files. Output contains only their base names.
	Kubeconfigs []string
	// Selection selects behaviors, and MakePlan applies it; see plan.Make.
	Selection plan.Selection
	MakePlan  func(context.Context, plan.Selection) (plan.Plan, error)
	// Resources are tested instead of ConfigMaps, each of them on each cluster. FixtureFiles are read into their Fixtures.
	Resources    Resources
	FixtureFiles []string
	// Controller is the Deployment of the resource's controller in kubectl's notation: "deploy/NAME".
	Controller, ControllerNamespace string
	// Kubectl is the path of the kubectl to test. If empty, FindKubectl finds one if a selected behavior needs it.
	Kubectl     string
	FindKubectl func(context.Context) (session.Kubectl, error)
	// Pool runs the behaviors. Its Executable, Durations and Note are those of the run.
	workers.Pool
	// CleanupTimeout limits the wait at the end of the run until all its objects are gone; 0 for a default, which is longer on a slow cluster.
	CleanupTimeout time.Duration
	// Settings are for the specs.
	Settings session.Settings
	// Namespace is the only namespace to use; empty for namespaces of the run.
	Namespace string
	// KnownFailures are failures that do not fail the run. They are read from KnownFailuresFile where that is named.
	KnownFailures     knownfailures.List
	KnownFailuresFile string
	// Strict makes deviations of observed behaviors count as failures.
	Strict bool
	// Redact also removes what identifies a cluster from reports and output; see redact.Scope.
	Redact bool
	// ReportDir is the directory of the reports; empty for none.
	ReportDir string
	// StoreReport also stores the redacted report, at the same times as it is written to the ReportDir; nil for not.
	StoreReport func(v1alpha1.Report) error
	// SendTrace sends the redacted report as a trace while the run cleans up; nil for not. Its error is printed as a warning. Settings.TraceID
	// is the id of the trace.
	SendTrace func(context.Context, v1alpha1.Report) error
	// DurationsFile stores how long behaviors took, for the order of the next run; empty for none.
	DurationsFile string
	// Out receives the progress of the run at the given Volume, and ErrOut the stack traces of panics if that is Verbose.
	Out, ErrOut io.Writer
	Volume      progress.Volume
	// Follow returns a progress that also passes on what it shows; nil for none.
	Follow func(shown progress.Progress) progress.Progress

	id       string
	clusters []clusters.Cluster
	plan     plan.Plan
}

// NewOptions returns the defaults of a run.
func NewOptions() Options {
	return Options{
		Name:        FlagName,
		MakePlan:    func(_ context.Context, selection plan.Selection) (plan.Plan, error) { return plan.Make(selection) },
		FindKubectl: func(ctx context.Context) (session.Kubectl, error) { return kubectlInPath(ctx), nil },
		Settings:    session.DefaultSettings(),
		Out:         io.Discard,
		ErrOut:      io.Discard,
	}
}

// FlagName names options like the runner's flags.
func FlagName(flag string) string { return "--" + flag }

// kubectlInPath returns the kubectl in PATH, or why there is none.
func kubectlInPath(ctx context.Context) session.Kubectl {
	found, _ := session.FindKubectl(ctx, "")
	return found
}

// Complete reads the files of the options, selects the behaviors and resolves existing clusters.
func (o *Options) Complete(ctx context.Context) (err error) {
	o.id = cmp.Or(o.RunID, environment.NewRunID())
	if o.Executable, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program's executable: %w", err)
	}
	if err := errors.Join(o.readFixtures(), o.parseController(), o.findNamedKubectl(ctx), o.checkWebhookHost(ctx)); err != nil {
		return err
	}
	o.Selection.AnyResource = o.Resources.All || len(o.Resources.Names) > 0
	o.Selection.Controller, o.Selection.NoCreate = o.Settings.Controller.IsNamed(), o.Settings.NoCreate
	if o.plan, err = o.MakePlan(ctx, o.Selection); err != nil {
		return err
	}
	if err := o.checkKnownFailures(); err != nil {
		return err
	}
	if o.FindClusters != nil {
		o.clusters, err = o.FindClusters()
	}
	return err
}

// checkKnownFailures reads the list of known failures, which must name behaviors of the catalog.
func (o *Options) checkKnownFailures() (err error) {
	where := o.Name("known-failures")
	if o.KnownFailuresFile != "" {
		where += " " + o.KnownFailuresFile
		o.KnownFailures, err = knownfailures.Read(o.KnownFailuresFile)
	}
	if err == nil {
		err = o.KnownFailures.Check(o.plan.IDs())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

func (o *Options) readFixtures() error {
	for _, file := range o.FixtureFiles {
		documents, err := manifest.Documents(file)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name("fixture"), err)
		}
		o.Resources.Fixtures = append(o.Resources.Fixtures, documents...)
	}
	o.Settings.Fixtures = o.Resources.Fixtures
	return nil
}

func (o *Options) parseController() (err error) {
	if o.Controller != "" && o.ControllerNamespace != "" && !o.Settings.Controller.IsNamed() {
		o.Settings.Controller, err = session.ParseController(o.Controller, o.ControllerNamespace)
	}
	return err
}

func (o *Options) findNamedKubectl(ctx context.Context) (err error) {
	if o.Kubectl == "" {
		return nil
	}
	if o.Settings.Kubectl, err = session.FindKubectl(ctx, o.Kubectl); err != nil {
		return fmt.Errorf("%w: set %s to the FILE of a kubectl for this machine", err, o.Name("kubectl"))
	}
	return nil
}

// Validate checks the values of the options. It creates the report directory, so that a long run does not fail at its end.
func (o *Options) Validate() error {
	for _, check := range []func() error{
		workers.Supported, o.checkNumbers, o.checkResources, o.checkController, o.checkAdditions, o.checkNamespace, o.checkReportDir,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) checkNumbers() error {
	for _, number := range []struct {
		flag     string
		positive bool
	}{
		{"procs", o.Processes >= 0},
		{"scale", o.Settings.Scale > 0},
		{"timeout", o.Timeout >= 0},
		{"wait-timeout", o.Settings.WaitTimeout >= 0},
		{"settle", o.Settings.Settle >= 0},
		{"cleanup-timeout", o.CleanupTimeout >= 0},
	} {
		if !number.positive {
			return fmt.Errorf("%s must be greater than zero", o.Name(number.flag))
		}
	}
	switch keeps, flag := o.Settings.KeepFailed, o.Name("keep-failed"); {
	case keeps && o.Settings.NoCreate:
		return fmt.Errorf("%s and %s are mutually exclusive: nothing is created that could be kept", flag, o.Name("no-create"))
	case keeps && o.Namespace != "":
		return fmt.Errorf("%s and %s are mutually exclusive: the run keeps only its own namespaces", flag, o.Name("namespace"))
	}
	return nil
}

// resourceNames matches names of resources, optionally with a group and a version.
var resourceNames = regexp.MustCompile(`^[[:alnum:]]([-.[:alnum:]]*[[:alnum:]])?(/[[:alnum:]]+)?$`)

func (o *Options) checkResources() error {
	names, resource := o.Resources.Names, o.Name("resource")
	for i, name := range names {
		switch {
		case name == "":
			return fmt.Errorf("%s must not be empty; `kubectl api-resources` lists the resources of a cluster", resource)
		case !resourceNames.MatchString(name):
			return fmt.Errorf("%s %q is not the name of a resource; write it as widgets.example.com or widgets.example.com/v1", resource, name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("%s %s is specified twice", resource, name)
		}
	}
	if len(o.Resources.Fixtures) > 0 && !o.Selection.AnyResource {
		return fmt.Errorf("%s requires %s or %s", o.Name("fixture"), resource, o.Name("all-resources"))
	}
	return nil
}

func (o *Options) checkController() error {
	controller, namespace := o.Name("controller"), o.Name("controller-namespace")
	inProcess := o.Settings.Controller.IsNamed() && !o.Settings.Controller.IsDeployment()
	if inProcess && o.Controller == "" {
		controller = o.Name("run-controller")
	}
	switch {
	case o.Controller == "" && o.ControllerNamespace == "" && !inProcess:
		return nil
	case inProcess && o.Controller != "":
		return fmt.Errorf("%s and %s are mutually exclusive", controller, o.Name("run-controller"))
	case o.Controller == "" && !inProcess:
		return fmt.Errorf("%s requires %s", namespace, controller)
	case o.Resources.All || len(o.Resources.Names) != 1:
		return fmt.Errorf("%s requires exactly one %s: others cannot be tested while the controller is stopped", controller, o.Name("resource"))
	case o.ControllerNamespace == "" && !inProcess:
		return fmt.Errorf("%s %s requires %s", controller, o.Controller, namespace)
	case o.Settings.NoCreate:
		return fmt.Errorf("%s and %s are mutually exclusive: a controller acts on objects that the run creates", controller, o.Name("no-create"))
	}
	return nil
}

func (o *Options) checkAdditions() error { return o.Settings.Overlay().Check(session.Domain, o.Name) }

func (o *Options) checkNamespace() error {
	if o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		return fmt.Errorf("%s %q is not the name of a namespace", o.Name("namespace"), o.Namespace)
	}
	return nil
}

func (o *Options) checkReportDir() error {
	if o.ReportDir == "" {
		return nil
	}
	if err := os.MkdirAll(o.ReportDir, 0o755); err != nil {
		return fmt.Errorf("create the report directory %s: %w; choose another with %s", o.ReportDir, err, o.Name("report-dir"))
	}
	return nil
}
