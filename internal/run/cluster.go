package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// clusterRun is a run on one of its clusters, or on one resource of it: those of one cluster share an environment.
type clusterRun struct {
	clusters.Cluster
	// resource is what is tested in the place of ConfigMaps, by its name, and object one of it; empty where ConfigMaps are.
	resource string
	object   *unstructured.Unstructured
	// status is one that it may have; nil where nothing is known of any.
	status map[string]any
	// orphansByDefault says that a delete of it that names no policy orphans its dependents.
	orphansByDefault bool
	// release is how long others hold one of them that is deleted, and tried says that it is known.
	release time.Duration
	tried   bool
	// shared makes the environment, once.
	shared *sharedEnvironment
	// first says that it is the first of those that share an environment.
	first bool
	// environment is what the run made on the cluster; nil when the cluster cannot be tested.
	environment *environment.Environment
	report      *v1alpha1.Cluster
	// results holds what is known of each behavior, by id.
	results map[string]v1alpha1.Result
}

// newClusterRuns are the runs on one cluster: one a resource.
func newClusterRuns(cluster clusters.Cluster, resources Resources) []*clusterRun {
	var runs []*clusterRun
	shared := &sharedEnvironment{}
	for i, resource := range resources.orNone() {
		run := &clusterRun{
			Cluster: cluster, resource: resource, shared: shared, first: i == 0,
			report: &v1alpha1.Cluster{Resource: resource}, results: map[string]v1alpha1.Result{},
		}
		if resource != "" {
			run.Name += " " + resource
		}
		run.report.Name = run.Name
		runs = append(runs, run)
	}
	return runs
}

// sharedEnvironment is what a run makes once on a cluster, for all the resources that are tested there.
type sharedEnvironment struct {
	once   sync.Once
	made   *environment.Environment
	finder *resourceFinder
	err    error
	// ctx ends when the API server is lost; see watch.
	ctx                  context.Context
	watching, unwatching sync.Once
	done, watched        chan struct{}
}

// setUp makes the run's environment on the cluster, or waits until it is made, and notes what the cluster is like. The
// error says why it cannot be tested.
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
	c.status = c.shared.finder.status(ctx, c.resource, c.object)
	look := func() {
		c.environment.AwaitGarbageCollector(ctx, c.Provider.RESTConfig(), c.object)
		c.orphansByDefault = c.environment.OrphansByDefault(ctx, c.object)
	}
	if c.tried {
		look()
		return nil
	}
	var err error
	c.release, err = c.environment.ReleaseTime(ctx, c.object, look)
	return err
}

// makeEnvironment makes the run's environment on the cluster.
func (c *clusterRun) makeEnvironment(ctx context.Context, options *Options) (*environment.Environment, *resourceFinder, error) {
	if c.resource == "" {
		made, err := environment.Setup(ctx, c.Provider.RESTConfig(), c.environmentOptions(options))
		return made, nil, err
	}
	finder, err := newResourceFinder(c.Provider.RESTConfig(), options.Resources, options.Settings.Overlay())
	if err != nil {
		return nil, nil, err
	}
	made, err := c.makeEnvironmentFor(ctx, options, finder)
	return made, finder, err
}

// makeEnvironmentFor makes the run's environment on the cluster, with what must exist before objects of resources.
func (c *clusterRun) makeEnvironmentFor(ctx context.Context, options *Options, finder *resourceFinder) (*environment.Environment, error) {
	setup := c.environmentOptions(options)
	setup.Prerequisites = finder.prerequisites()
	return environment.Setup(ctx, c.Provider.RESTConfig(), setup)
}

// session is what a worker should know of the cluster.
func (c *clusterRun) session(worker int) session.Config {
	config := c.environment.Session(worker)
	config.Settings = config.ForRelease(c.release)
	config.Resource, config.Status, config.OrphansByDefault = c.object, c.status, c.orphansByDefault
	return config
}

// noteEnvironment notes what the cluster is like.
func (c *clusterRun) noteEnvironment(options *Options) {
	if made := c.shared.made; made != nil {
		c.environment = made
		c.report.ServerVersion, c.report.NodeRuntime = made.ServerVersion(), made.NodeRuntime()
		c.report.KubectlVersion = options.Settings.Kubectl.Version
		c.notePreflight()
	}
}

// notePreflight notes what was found out about the cluster before anything was tested on it.
func (c *clusterRun) notePreflight() {
	unsupported := c.environment.Unsupported()
	c.report.Capabilities = nil
	for _, need := range v1alpha1.Features {
		reason, is := unsupported[need]
		c.report.Capabilities = append(c.report.Capabilities, v1alpha1.Capability{Feature: need, Present: !is, Reason: reason})
	}
	c.report.Preflight = c.environment.Preflight()
}

// withCapabilities is what is known of the cluster, with those capabilities only that are wanted.
func (c *clusterRun) withCapabilities(wanted func(v1alpha1.Feature) bool) v1alpha1.Cluster {
	known := *c.report
	known.Capabilities = slices.DeleteFunc(slices.Clone(known.Capabilities), func(capability v1alpha1.Capability) bool {
		return !wanted(capability.Feature)
	})
	return known
}

// environmentOptions are those of the run, and what the provider knows of its cluster.
func (c *clusterRun) environmentOptions(options *Options) environment.Options {
	setup := environment.Options{
		Run: options.id, Workers: options.pool.Workers(options.plan.Chosen()), Settings: options.Settings, CustomKinds: options.plan.Wants(v1alpha1.CRD),
		SharedNamespace: options.Namespace, CleanupTimeout: options.cleanupTimeout(),
	}
	if c.resource == "" && !options.Resources.All {
		for _, behavior := range options.plan.Chosen() {
			setup.Behaviors = append(setup.Behaviors, behavior.Behavior)
		}
	}
	features := c.Provider.Features()
	setup.Disruptive = setup.Disruptive || features.Ephemeral
	setup.Supported, setup.Unsupported, setup.Components = features.Supported, features.Unsupported, features.Components
	if setup.WebhookHost == "" {
		setup.WebhookHost = features.WebhookHost
		if features.NoWebhooks != "" {
			setup.Unsupported = maps.Clone(setup.Unsupported)
			setup.Unsupported[v1alpha1.Hook] = features.NoWebhooks
		}
	}
	return setup
}

// needsTearDown says whether something of the run stays on the cluster unless the run removes it.
func (c *clusterRun) needsTearDown() bool {
	return c.first && c.environment != nil && !c.ephemeral() && !c.environment.CreatesNothing()
}

// ephemeral says whether the cluster was made for the run, and goes after it.
func (c *clusterRun) ephemeral() bool { return c.Provider.Features().Ephemeral }

// removal says how to remove what a run left on the cluster.
func (c *clusterRun) removal(run string) string {
	if namespace := c.environment.Session(1); namespace.Shared {
		run += " --namespace " + namespace.Namespace
	}
	return fmt.Sprintf("run `runner cleanup --run %s` there", run)
}

// complete adds the behaviors of which nothing is known, so that every report names the whole catalogue. Where the runner
// itself has failed, that is why.
func (c *clusterRun) complete(plan plan.Plan, crashed error) {
	for _, behavior := range plan.Catalogue {
		result, known := c.results[behavior.ID]
		if !known {
			result = v1alpha1.Result{Behavior: behavior.Behavior}
			result.Outcome, result.Reason = c.unknown(plan.Filtered(behavior.ID), crashed)
		}
		c.report.Results = append(c.report.Results, result)
	}
}

// unknown says how a behavior ended that no worker reported.
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
