// Package reporttest makes reports for tests: a small one in which everything occurs, one that speaks a hostile text
// wherever a cluster could, and a fleet of many behaviours on many clusters.
package reporttest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// Start is when the runs of these reports began.
var Start = time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)

// Sample is a report in which every outcome occurs, on two clusters, and a third one that could not be judged.
func Sample() v1alpha1.Report {
	return figures.Measure(v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.Kind,
		RunID:      "k7d2m",
		Runner:     "v0.1.0",
		Start:      Start,
		End:        Start.Add(12345 * time.Millisecond),
		Clusters: []v1alpha1.Cluster{
			{
				Name:          "kind-a",
				ServerVersion: "v1.36.3",
				NodeRuntime:   "containerd://1.6.20", KubectlVersion: "v1.36.1",
				Capabilities: []v1alpha1.Capability{{Need: v1alpha1.GC, Present: true}, {Need: v1alpha1.Node, Reason: "no node is ready"}},
				Preflight: []v1alpha1.Finding{
					{Check: "server", Severity: v1alpha1.OK, Cause: "Kubernetes v1.36.3"},
					{
						Check: "features", Severity: v1alpha1.Skips, Cause: "node: no node is ready", Effect: v1alpha1.SkippedEffect(1),
						Behaviors: []string{"graceful.node.forced"},
					},
				},
				Results: []v1alpha1.Result{
					Ran("cascade.background.owner-goes-first", "lets the owner go first", v1alpha1.Passed),
					Failing(Ran("cascade.foreground.blocking-dependents-first", "outlives every blocking dependent", v1alpha1.Failed)),
					Failing(Ran("cascade.foreground.repeated-with-finalizer", "leaves no foregroundDeletion behind", v1alpha1.Deviated)),
					Again(Because(Ran("cascade.orphan.one-level", "leaves grandchildren their owner", v1alpha1.Errored), "connection refused"), "connection reset"),
					Because(Ran("graceful.default-thirty", "gives thirty seconds", v1alpha1.Interrupted), "stopped by SIGINT"),
					Because(Unstarted("graceful.node.forced", "is refused", v1alpha1.Skipped), "no node is ready"),
					Unstarted("graceful.only-pods", "is refused", v1alpha1.Filtered),
					Unstarted("graceful.zero-is-now", "removes a scheduled pod at once", v1alpha1.Interrupted),
				},
			},
			{
				Name:          "arn:aws:eks:eu-central-1:123:cluster/prod",
				ServerVersion: "v1.34.4",
				Results:       []v1alpha1.Result{Ran("cascade.background.owner-goes-first", "lets the owner go first", v1alpha1.Passed)},
			},
			{Name: "gone", Problem: "dial tcp 10.0.0.1:6443: connect: connection refused; is the kubeconfig current?"},
		},
	})
}

// Run is a report of one cluster.
func Run(id string, start time.Duration, cluster v1alpha1.Cluster) v1alpha1.Report {
	return v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, RunID: id, Runner: "v1",
		Start: Start.Add(start), End: Start.Add(start + time.Minute), Clusters: []v1alpha1.Cluster{cluster},
	}
}

// OnCluster is a cluster with some results.
func OnCluster(name string, results ...v1alpha1.Result) v1alpha1.Cluster {
	return v1alpha1.Cluster{Name: name, ServerVersion: "v1.36.3", Results: results}
}

// Unstarted is a behaviour that did not run, Ran one that took 1.5 seconds and recorded Timeline("owner", "child").
func Unstarted(id, statement string, outcome v1alpha1.Outcome) v1alpha1.Result {
	return v1alpha1.Result{
		Behavior: v1alpha1.Behavior{
			ID: id, Statement: statement, Level: v1alpha1.Core, Needs: []v1alpha1.Need{v1alpha1.GC},
			File: "suites/cascade/foreground.go", Line: 42,
		},
		Outcome: outcome,
	}
}

// Ran is a behaviour that took 1.5 seconds; see Unstarted.
func Ran(id, statement string, outcome v1alpha1.Outcome) v1alpha1.Result {
	r := Unstarted(id, statement, outcome)
	r.Start, r.Seconds, r.Timeline = Start.Add(time.Second), 1.5, Timeline("owner", "child")
	return r
}

// Because gives a result the reason for its outcome.
func Because(r v1alpha1.Result, text string) v1alpha1.Result {
	r.Reason = text
	return r
}

// Again gives a result a try before it.
func Again(r v1alpha1.Result, reason string) v1alpha1.Result {
	r.Tries = append(r.Tries, v1alpha1.Try{Reason: reason, Start: Start, Seconds: 0.5})
	return r
}

// Failing gives a result a failure with everything one can have.
func Failing(r v1alpha1.Result) v1alpha1.Result {
	r.Failure = &v1alpha1.Failure{
		Message:     "Expected the owner to be deleted last\n    <string>: DELETED owner\nto come after\n    <string>: DELETED child",
		Location:    "suites/cascade/foreground.go:57",
		Explanation: []string{"ConfigMap child: finalizers deletion-conformance.github.io/hold"},
	}
	return r
}

// Timeline is a foreground delete of an owner with one dependent.
func Timeline(owner, child string) v1alpha1.Timeline {
	at := func(ms int) time.Time { return Start.Add(time.Duration(ms) * time.Millisecond) }
	named := func(name string, uid types.UID) v1alpha1.ObjectReference {
		return v1alpha1.ObjectReference{Version: "v1", Kind: "ConfigMap", Namespace: "dc-k7d2m-1", Name: name, UID: uid}
	}
	theOwner, theChild := named(owner, "11111111-aaaa"), named(child, "22222222-bbbb")
	seen := func(ms int, event string, object v1alpha1.ObjectReference) v1alpha1.Observation {
		return v1alpha1.Observation{At: at(ms), Type: event, ObjectReference: object}
	}
	ownedBy := func(event v1alpha1.Observation) v1alpha1.Observation {
		event.Owners = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: theOwner.UID, BlockOwnerDeletion: new(true)}}
		return event
	}
	terminating := seen(14, "MODIFIED", theOwner)
	terminating.DeletionTimestamp, terminating.GraceSeconds = new(metav1.NewTime(Start)), new(int64(0))
	terminating.Finalizers = []string{metav1.FinalizerDeleteDependents}
	const collection = "/api/v1/namespaces/dc-k7d2m-1/configmaps"
	return v1alpha1.Timeline{
		Requests: []v1alpha1.Request{
			{At: at(0), Object: &theOwner, Verb: "POST", Path: collection, Body: `{"metadata":{"name":"` + owner + `"}}`, Status: 201, Latency: 3 * time.Millisecond},
			{At: at(10), Object: &theOwner, Verb: "DELETE", Path: collection + "/" + owner, Body: `{"propagationPolicy":"Foreground"}`, Status: 200, Latency: 2 * time.Millisecond, Warnings: []string{"mind the gap"}},
			{At: at(20), Object: &theOwner, Verb: "PATCH", Path: collection + "/" + owner, Status: 422, Latency: time.Millisecond, Refusal: "metadata.finalizers: Forbidden"},
			{At: at(30), Object: &theOwner, Verb: "GET", Path: collection + "/" + owner, Error: "EOF"},
		},
		Events: []v1alpha1.Observation{
			seen(4, "ADDED", theOwner), ownedBy(seen(6, "ADDED", theChild)), terminating, ownedBy(seen(40, "DELETED", theChild)), seen(55, "DELETED", theOwner),
		},
	}
}

// Reviewed is a delete of a pod that a webhook was asked about: once by the user's own, twice by the node's confirmation, the
// second time with a denial.
func Reviewed() v1alpha1.Timeline {
	at := func(ms int) time.Time { return Start.Add(time.Duration(ms) * time.Millisecond) }
	pod := v1alpha1.ObjectReference{Version: "v1", Kind: "Pod", Namespace: "dc-k7d2m-1", Name: "pod", UID: "33333333-cccc"}
	asked := func(ms int, grace int64) v1alpha1.Review {
		return v1alpha1.Review{At: at(ms), Latency: time.Millisecond, Operation: "DELETE", Object: pod, GraceSeconds: &grace, Allowed: true}
	}
	confirmed := func(ms int, stored int64) v1alpha1.Review {
		review := asked(ms, 0)
		review.User, review.StoredGraceSeconds = "system:node:a", &stored
		review.Preconditions = &metav1.Preconditions{UID: &pod.UID}
		return review
	}
	denied := confirmed(2100, 0)
	denied.Allowed, denied.Message = false, "this one stays"
	return v1alpha1.Timeline{
		Requests: []v1alpha1.Request{{
			At: at(0), Object: &pod, Verb: "DELETE", Path: "/api/v1/namespaces/dc-k7d2m-1/pods/pod", Status: 200, Latency: 4 * time.Millisecond,
		}},
		Events:  []v1alpha1.Observation{{At: at(3), Type: "MODIFIED", ObjectReference: pod, DeletionTimestamp: new(metav1.NewTime(Start))}},
		Reviews: []v1alpha1.Review{asked(1, 20), confirmed(2000, 20), denied},
	}
}
