package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
)

// clusterRun is a run on one of its clusters, or on one resource of it. The runs of one cluster share an environment.
type clusterRun struct {
	clusters.Cluster
	// resource is the name of the resource under test, and object an object of it; empty when ConfigMaps are tested.
	resource string
	object   *unstructured.Unstructured
	// status is a valid status of such an object; nil when none is known.
	status map[string]any
	// orphansByDefault is set when a delete without a policy orphans the object's dependents.
	orphansByDefault bool
	// release is what controllers do with a deleted object, and tried is set when it was measured. unreleased is its NotRemoved, or that of a
	// behavior, for workers that start later.
	release    preflight.Release
	tried      bool
	unreleased atomic.Value
	// shared creates the environment once.
	shared *sharedEnvironment
	// first is set for the first of the runs that share an environment.
	first bool
	// environment is the environment of the run; nil when the cluster cannot be tested.
	environment *environment.Environment
	report      *v1alpha1.Cluster
	// results contains the known results, by behavior id, and kept the evidence of those whose objects were kept.
	results map[string]v1alpha1.Result
	kept    map[string]specs.Evidence
}

// newClusterRuns returns the runs on one cluster: one for each resource.
func newClusterRuns(cluster clusters.Cluster, resources Resources) []*clusterRun {
	var runs []*clusterRun
	shared := &sharedEnvironment{}
	for i, resource := range resources.orNone() {
		run := &clusterRun{
			Cluster: cluster, resource: resource, shared: shared, first: i == 0,
			report: &v1alpha1.Cluster{Resource: resource}, results: map[string]v1alpha1.Result{}, kept: map[string]specs.Evidence{},
		}
		if resource != "" {
			run.Name += " " + resource
		}
		run.report.Name = run.Name
		runs = append(runs, run)
	}
	return runs
}

// sharedEnvironment is what a run creates once on a cluster, for all its resources.
type sharedEnvironment struct {
	once   sync.Once
	made   *environment.Environment
	finder *resourceFinder
	err    error
	// ctx ends when the API server is lost; see watch.
	ctx                  context.Context
	watching, unwatching sync.Once
	done, watched        chan struct{}
	// shorter are the outages after which the server responded again. They are read when nothing watches the server any longer.
	shorter []*outage
}

// setUp creates the environment of the run on the cluster, or waits for it, and records the cluster's properties. The error is why it
// cannot be tested.
func (c *clusterRun) setUp(ctx context.Context, options *Options) error {
	c.shared.once.Do(func() { c.shared.made, c.shared.finder, c.shared.err = c.makeEnvironment(ctx, options) })
	c.noteEnvironment(options)
	if c.shared.err != nil || c.resource == "" {
		return c.shared.err
	}
	if c.object == nil {
		object, err := c.shared.finder.object(ctx, c.resource, c.environment.Session(1).Namespace)
		if err != nil {
			return err
		}
		c.object = object
	}
	c.report.Warning = c.shared.finder.warning(c.resource)
	c.status = c.shared.finder.status(ctx, c.resource)
	look := func() {
		preflight.AwaitGarbageCollector(ctx, c.environment.Target(), c.object)
		c.orphansByDefault = preflight.OrphansByDefault(ctx, c.environment.Target(), c.object)
	}
	if c.tried {
		look()
	} else {
		var err error
		if c.release, err = preflight.TryRelease(ctx, c.environment.Target(), c.object, look); err != nil {
			return err
		}
	}
	if never := c.release.NotRemoved; never != "" {
		c.unreleased.Store(never)
		c.report.Warning = strings.TrimPrefix(c.report.Warning+"; "+shortenedWaits+never, "; ")
	}
	return nil
}

// shortenedWaits begins the warning about a resource whose controller does not remove its finalizer.
const shortenedWaits = "waits are shortened (set --wait-timeout if the controller takes longer): "

// makeEnvironment creates the environment of the run on the cluster.
func (c *clusterRun) makeEnvironment(ctx context.Context, options *Options) (*environment.Environment, *resourceFinder, error) {
	if c.resource == "" {
		made, err := environment.Setup(ctx, c.Provider.RESTConfig(), c.environmentOptions(options))
		return made, nil, err
	}
	finder, err := newResourceFinder(ctx, c.Cluster, options)
	if err != nil {
		return nil, nil, err
	}
	made, err := c.makeEnvironmentFor(ctx, options, finder)
	return made, finder, err
}

// makeEnvironmentFor creates the environment of the run on the cluster, with the prerequisites of resources.
func (c *clusterRun) makeEnvironmentFor(ctx context.Context, options *Options, finder *resourceFinder) (*environment.Environment, error) {
	setup := c.environmentOptions(options)
	setup.Prerequisites = finder.prerequisites()
	return environment.Setup(ctx, c.Provider.RESTConfig(), setup)
}

// session returns the configuration of a worker.
func (c *clusterRun) session(worker int) session.Config {
	config := c.environment.Session(worker)
	config.Release = c.release.Duration
	config.Unreleased, _ = c.unreleased.Load().(string)
	config.Resource, config.Status, config.OrphansByDefault = c.object, c.status, c.orphansByDefault
	return config
}

// noteEnvironment records the cluster's properties.
func (c *clusterRun) noteEnvironment(options *Options) {
	if made := c.shared.made; made != nil {
		c.environment = made
		c.report.ServerVersion, c.report.NodeRuntime = made.ServerVersion(), made.Preflight().NodeRuntime
		c.report.KubectlVersion = options.Settings.Kubectl.Version
		c.notePreflight()
	}
}

// notePreflight records the findings of preflight.
func (c *clusterRun) notePreflight() {
	unsupported := c.environment.Preflight().Unsupported()
	c.report.Features = nil
	for _, feature := range v1alpha1.Features {
		reason, missing := unsupported[feature]
		c.report.Features = append(c.report.Features, v1alpha1.FeatureStatus{Feature: feature, Present: !missing, Reason: reason})
	}
	c.report.Preflight = c.environment.Preflight().Findings()
}

// withFeatures returns the known properties of the cluster, with only some features.
func (c *clusterRun) withFeatures(wanted func(v1alpha1.Feature) bool) v1alpha1.Cluster {
	known := *c.report
	known.Features = slices.DeleteFunc(slices.Clone(known.Features), func(status v1alpha1.FeatureStatus) bool {
		return !wanted(status.Feature)
	})
	return known
}

// environmentOptions returns the options of the run, with the provider's knowledge about its cluster.
func (c *clusterRun) environmentOptions(options *Options) environment.Options {
	chosen := options.plan.Chosen()
	setup := environment.Options{
		Run: options.id, Workers: options.Workers(chosen), Settings: options.Settings, CustomKinds: options.plan.Requires(v1alpha1.CRD),
		SharedNamespace: options.Namespace, CleanupTimeout: options.CleanupTimeout,
		ExtraWorkers: func(distance time.Duration) int { return options.Extra(chosen, distance) },
	}
	if c.resource == "" && !options.Resources.All {
		for _, behavior := range chosen {
			setup.Behaviors = append(setup.Behaviors, behavior.Behavior)
		}
	}
	features := c.Provider.Features()
	setup.Disruptive = setup.Disruptive || features.Ephemeral
	setup.Supported, setup.Unsupported, setup.Components = features.Supported, features.Unsupported, features.Components
	if features.Ephemeral {
		setup.Supported = append(slices.Clone(setup.Supported), v1alpha1.OwnCluster)
	}
	if setup.WebhookHost == "" {
		setup.WebhookHost = features.WebhookHost
		if features.NoWebhooks != "" {
			setup.Unsupported = maps.Clone(setup.Unsupported)
			setup.Unsupported[v1alpha1.Hook] = features.NoWebhooks
		}
	}
	return setup
}

// needsTearDown reports whether the run must remove objects from the cluster.
func (c *clusterRun) needsTearDown() bool {
	return c.first && c.environment != nil && !c.ephemeral() && !c.environment.CreatesNothing()
}

// keepFailed makes the teardown keep the objects of behaviors that failed. Some that were kept may have turned out to be errored.
func (c *clusterRun) keepFailed() {
	for id, evidence := range c.kept {
		switch c.results[id].Outcome {
		case v1alpha1.Failed, v1alpha1.Deviated, v1alpha1.Known:
			c.environment.Keep(id, evidence.Kept, evidence.KeptIn)
		}
	}
}

// ephemeral reports whether the cluster was created for the run, and is deleted after it.
func (c *clusterRun) ephemeral() bool { return c.Provider.Features().Ephemeral }

// removal returns the command that removes what a run left on the cluster.
func (c *clusterRun) removal(run string) string {
	namespace := ""
	if own := c.environment.Session(1); own.Shared {
		namespace = own.Namespace
	}
	return fmt.Sprintf("run `%s` there", cleanupCommand(c.Cluster, run, namespace))
}

// cleanupCommand is the command that removes a run from a cluster. The namespace is the one that the run was restricted to; it may be
// empty.
func cleanupCommand(cluster clusters.Cluster, run, namespace string) string {
	command := "runner cleanup --run " + run
	if cluster.Flags != "" {
		command += " " + cluster.Flags
	}
	if namespace != "" {
		command += " --namespace " + namespace
	}
	return command
}

// CleanupCommands are the commands that remove what the run leaves if the program is killed, one for each cluster that exists, in lines.
// They are known after Complete.
func (o *Options) CleanupCommands() string {
	if o.CreateCluster != nil {
		return "runner cleanup"
	}
	if o.Settings.NoCreate {
		return ""
	}
	var commands []string
	for _, cluster := range o.clusters {
		commands = append(commands, cleanupCommand(cluster, o.id, o.Namespace))
	}
	return strings.Join(commands, "\n")
}

// complete adds behaviors without a result, so that every report contains the whole catalog. After a panic of the runner, that is the
// reason.
func (c *clusterRun) complete(plan plan.Plan, crashed error) {
	for _, behavior := range plan.Catalog {
		result, known := c.results[behavior.ID]
		if !known {
			result = v1alpha1.Result{Behavior: behavior.Behavior}
			result.Outcome, result.Reason = c.unknown(plan.Filtered(behavior.ID), crashed)
		}
		c.report.Results = append(c.report.Results, result)
	}
}

// unknown returns the outcome of a behavior that no worker reported.
func (c *clusterRun) unknown(filtered string, crashed error) (v1alpha1.Outcome, string) {
	switch {
	case filtered != "":
		return v1alpha1.Filtered, filtered
	case c.report.Problem != "":
		return v1alpha1.Errored, c.report.Problem
	case crashed != nil:
		return v1alpha1.Errored, crashed.Error()
	}
	return v1alpha1.Interrupted, "the run was interrupted before it started"
}
