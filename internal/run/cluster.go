package run

import (
	"context"
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	"github.com/deletion-conformance/deletion-conformance/provider"
)

// clusterRun is a run on one of its clusters.
type clusterRun struct {
	clusters.Cluster
	// environment is what the run made on the cluster; nil when the cluster cannot be judged.
	environment *environment.Environment
	report      *v1alpha1.Cluster
	// results holds what is known of each behaviour, by id.
	results map[string]v1alpha1.Result
}

func newClusterRun(cluster clusters.Cluster) *clusterRun {
	return &clusterRun{Cluster: cluster, report: &v1alpha1.Cluster{Name: cluster.Name}, results: map[string]v1alpha1.Result{}}
}

// setUp makes the run's environment on the cluster and notes what the cluster is like. The error says why it cannot be judged.
func (c *clusterRun) setUp(ctx context.Context, options Options) error {
	made, err := environment.Setup(ctx, c.Provider.KubernetesRestConfig(), c.environmentOptions(options))
	if made != nil {
		c.environment = made
		c.report.ServerVersion, c.report.NodeRuntime = made.ServerVersion(), made.NodeRuntime()
		c.report.KubectlVersion = options.Settings.Kubectl.Version
		unsupported := made.Unsupported()
		for _, need := range v1alpha1.Needs {
			reason, is := unsupported[need]
			c.report.Capabilities = append(c.report.Capabilities, v1alpha1.Capability{Need: need, Present: !is, Reason: reason})
		}
	}
	return err
}

// environmentOptions are those of the run, and what the provider knows of its cluster.
func (c *clusterRun) environmentOptions(options Options) environment.Options {
	setup := environment.Options{
		Run: options.ID, Workers: options.Pool.Processes, Settings: options.Settings, CustomKind: options.Plan.UsesSharedKind(),
		SharedNamespace: options.Namespace,
	}
	setup.Disruptive = setup.Disruptive || c.ephemeral()
	if reporter, is := c.Provider.(provider.FeatureReporter); is {
		features := reporter.Features()
		setup.Supported, setup.Unsupported = features.Supported, features.Unsupported
	}
	if controller, is := c.Provider.(provider.ComponentController); is {
		setup.Components = controller.Components()
	}
	return setup
}

// needsTearDown says whether something of the run stays on the cluster unless the run removes it.
func (c *clusterRun) needsTearDown() bool {
	return c.environment != nil && !c.ephemeral()
}

// ephemeral says whether the cluster was made for the run, and goes after it.
func (c *clusterRun) ephemeral() bool {
	ephemeral, is := c.Provider.(provider.Ephemeral)
	return is && ephemeral.Ephemeral()
}

// removal says how to remove what a run left on the cluster.
func (c *clusterRun) removal(run string) string {
	if namespace := c.environment.Session(1); namespace.Shared {
		run += " --namespace " + namespace.Namespace
	}
	return fmt.Sprintf("run `runner cleanup --run %s` there", run)
}

// complete adds the behaviours of which nothing is known, so that every report names the whole catalogue. Where the runner
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

// unknown says how a behaviour ended that no worker reported.
func (c *clusterRun) unknown(filtered string, crashed error) (v1alpha1.Outcome, string) {
	switch {
	case filtered != "":
		return v1alpha1.Filtered, filtered
	case c.report.Problem != "":
		return v1alpha1.Errored, c.report.Problem
	case crashed != nil:
		return v1alpha1.Errored, crashed.Error()
	}
	return v1alpha1.Interrupted, "the run was interrupted before it could be judged"
}
