// Package environment is what a run sets up on a cluster and deletes after it: namespaces for the workers, a lease, and everything that specs
// and earlier runs have left.
package environment

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Options configure a run on a cluster.
type Options struct {
	session.Settings
	// Run is the run's id; see NewRunID.
	Run string
	// Workers is the number of workers that run specs in parallel; each gets a namespace.
	Workers int
	// ExtraWorkers returns the number of additional workers for a network distance; nil for none. See Latency.Distance.
	ExtraWorkers func(distance time.Duration) int
	// Prerequisites are created in each worker's namespace, or once if they are cluster-scoped, before the specs.
	Prerequisites []*client.Object
	// SharedNamespace is an existing namespace to use; empty for namespaces of the run.
	SharedNamespace string
	// Supported are features that the creator of the cluster guarantees. They are not probed, so that behaviors fail instead of being
	// skipped when a feature is missing.
	Supported []v1alpha1.Feature
	// Unsupported maps features that are known to be missing to the reasons; they are not probed either.
	Unsupported map[v1alpha1.Feature]string
	// CustomKinds is set when specs will use custom kinds. Setup then defines them early, because the garbage collector takes up to 30 s to
	// discover a new kind.
	CustomKinds bool
	// Components is the socket for stopping components of the cluster; empty when that is not possible.
	Components string
	// Behaviors are the behaviors of the run, whose objects setup creates as dry-runs. It does not when a resource under test replaces
	// ConfigMaps.
	Behaviors []v1alpha1.Behavior
	// CleanupTimeout is how long teardown waits until everything is gone; 0 for DefaultCleanupTimeout, multiplied by the slowness of the
	// cluster.
	CleanupTimeout time.Duration
}

// Environment is a run on a cluster: what it has set up there, and what preflight has found.
type Environment struct {
	options Options
	client  *client.Client
	lease   *lease
	// namespaces are those that the run created for its workers, in order.
	namespaces    []*client.Object
	extraWorkers  int
	groupDomain   string
	serverVersion string
	// latency is the measured speed of the cluster, and skew how far the server's clock is ahead of the runner's.
	latency preflight.Latency
	skew    time.Duration
	// found is nil before preflight.
	found *preflight.Result
	// lostGarbageCollector describes the canary that the garbage collector did not delete, for workers that start later.
	lostGarbageCollector atomic.Value
	// kept are the objects that stay; nil for none.
	kept *kept
}

// CreatesNothing reports whether the run sends only dry-runs.
func (e *Environment) CreatesNothing() bool { return e.options.NoCreate }

// Latency is the measured speed of the cluster.
func (e *Environment) Latency() preflight.Latency { return e.latency }

// ServerVersion is the API server's gitVersion.
func (e *Environment) ServerVersion() string { return e.serverVersion }

// Preflight is what preflight has found on the cluster.
func (e *Environment) Preflight() *preflight.Result { return e.found }

// workers is the number of workers on this cluster.
func (e *Environment) workers() int { return max(e.options.Workers, 1) + e.extraWorkers }

// ExtraWorkers is the number of workers on this cluster in addition to those of the options; see Options.ExtraWorkers.
func (e *Environment) ExtraWorkers() int { return e.extraWorkers }

func (e *Environment) labels(worker int) map[string]string {
	return session.Config{Run: e.options.Run, Worker: worker}.Labels()
}

// RecordLostGarbageCollector records that the garbage collector did not delete a barrier's canary. Workers that start later do not wait for it.
func (e *Environment) RecordLostGarbageCollector(reason string) { e.lostGarbageCollector.Store(reason) }

// Session returns the configuration of one worker, numbered from 1.
func (e *Environment) Session(worker int) session.Config {
	config := session.Config{
		Settings:      e.options.Settings,
		Run:           e.options.Run,
		Worker:        worker,
		GroupDomain:   e.groupDomain,
		Namespace:     e.namespaceOf(worker),
		Shared:        e.options.SharedNamespace != "",
		ServerVersion: e.serverVersion,
		Components:    e.options.Components,
		SpareNode:     e.SpareNode(),
		Unsupported:   e.options.Unsupported,
	}
	config.LostGarbageCollector, _ = e.lostGarbageCollector.Load().(string)
	if e.found != nil {
		return e.found.Apply(config)
	}
	return config
}

// Target returns the cluster as the first worker uses it.
func (e *Environment) Target() preflight.Target {
	return preflight.Target{
		Config: e.Session(1), Client: e.client, Behaviors: e.options.Behaviors, Supported: e.options.Supported,
		Latency: e.latency, Skew: e.skew, Leased: e.lease != nil,
	}
}

// SpareNode returns the node that disruptive specs have for themselves, so that other specs can run pods meanwhile: the second one, where
// components of nodes can be stopped at all. It is empty when there is none.
func (e *Environment) SpareNode() string {
	if e.found == nil || !e.options.Disruptive || e.options.Components == "" {
		return ""
	}
	return e.found.SecondNode
}

// namespaceOf returns the namespace of a worker, numbered from 1.
func (e *Environment) namespaceOf(worker int) string {
	if shared := e.options.SharedNamespace; shared != "" {
		return shared
	}
	return e.namespaces[max(worker-1, 0)%len(e.namespaces)].GetName()
}

// Teardown removes everything that the run created except what Keep names, and waits until it is gone; see cleanup.remove.
func (e *Environment) Teardown(ctx context.Context) error {
	e.lease.release()
	return e.cleanup().remove(ctx)
}

// cleanup describes what the run has created so far.
func (e *Environment) cleanup() cleanup {
	made := cleanup{
		client: e.client, run: e.options.Run, shared: e.options.SharedNamespace, namespaces: e.namespaces, workers: e.workers(), settings: e.options.Settings,
		timeout: e.options.CleanupTimeout, kept: e.kept,
	}
	unsupported := e.options.Unsupported
	if e.found != nil {
		made.slow, made.interrupted, unsupported = e.found.SlowNamespaces, e.found.Interrupted, e.found.Unsupported()
	}
	if !made.interrupted {
		made.removal = session.Config{Unsupported: unsupported}.Removal()
	}
	return made
}
