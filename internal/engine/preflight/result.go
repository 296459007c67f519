package preflight

import (
	"cmp"
	"maps"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
)

// Result is what preflight has found.
type Result struct {
	// NodeRuntime is the container runtime that the nodes report ("containerd://1.7.2"); empty without nodes, or without the permission to
	// list them.
	NodeRuntime string
	// SecondNode is the name of a second node that runs pods; empty when there is none.
	SecondNode string
	// SlowNamespaces is why namespaces are deleted slowly; empty when no reason is known.
	SlowNamespaces string
	// Interrupted is set when an interruption stopped the probes.
	Interrupted bool

	target Target
	// missing are the features that were probed and are missing.
	missing map[v1alpha1.Feature]skipReason
	// skips are what admission does to objects of the run, and which kinds and permissions are missing.
	skips    []skip
	findings []v1alpha1.Finding
	// mutators are the cluster's mutating admission, and nodeSkews how far the clocks of nodes are ahead of the server's.
	mutators  admission.Mutators
	nodeSkews map[string]time.Duration
	// nodeProbe may still be running; nil when there is none.
	nodeProbe *nodeProbe
}

// Unsupported maps missing features to the reasons, as far as they are known: see AwaitSimulatedNode.
func (r *Result) Unsupported() map[v1alpha1.Feature]string {
	unsupported := map[v1alpha1.Feature]string{}
	maps.Copy(unsupported, r.target.Unsupported)
	for feature, reason := range r.missing {
		unsupported[feature] = reason.text
	}
	if lost := r.nodeProbe.ended().lost; lost != "" {
		unsupported[v1alpha1.SimulatedNode] = lost
	}
	return unsupported
}

// Apply adds what preflight has found to the configuration of a worker.
func (r *Result) Apply(config session.Config) session.Config {
	config.Unsupported, config.Mutators, config.NodeSkews = r.Unsupported(), r.mutators, r.nodeSkews
	config.Prevented = map[string]string{}
	for _, skip := range r.skips {
		if skip.announced {
			continue
		}
		for _, id := range skip.behaviors {
			config.Prevented[id] = cmp.Or(config.Prevented[id], skip.text)
		}
	}
	return config
}

// AwaitSimulatedNode waits until it is known whether Nodes without a machine remain. It returns at once without a probe.
func (r *Result) AwaitSimulatedNode() {
	if r.nodeProbe != nil {
		<-r.nodeProbe.done
	}
}
