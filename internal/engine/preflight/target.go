package preflight

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Target is a cluster as the first worker of a run uses it.
type Target struct {
	session.Config
	Client *client.Client
	// Behaviors are the behaviors of the run. There are none when a resource under test replaces ConfigMaps.
	Behaviors []v1alpha1.Behavior
	// Supported are features that the creator of the cluster guarantees. They are not probed, and neither are those that Config reports as
	// unsupported.
	Supported []v1alpha1.Feature
	// Latency is how long the cluster takes to respond, and Skew how far its clock is ahead of the runner's.
	Latency Latency
	Skew    time.Duration
	// Leased is set when the run has a Lease, which `runner cleanup` needs to start a stopped controller again.
	Leased bool
}

// behaviors returns the ids of the run's behaviors that require all of some features.
func (t Target) behaviors(features ...v1alpha1.Feature) []string {
	var ids []string
	for _, behavior := range t.Behaviors {
		if !slices.ContainsFunc(features, func(feature v1alpha1.Feature) bool { return !slices.Contains(behavior.Features, feature) }) {
			ids = append(ids, behavior.ID)
		}
	}
	return ids
}

// creating returns those that create a kind.
func (t Target) creating(kind string, features ...v1alpha1.Feature) []string {
	return slices.DeleteFunc(t.behaviors(features...), func(id string) bool { return !slices.Contains(readFixtures()[id].Creates, kind) })
}

// controlling returns those for whose objects controllers create a kind.
func (t Target) controlling(kind string, features ...v1alpha1.Feature) []string {
	return slices.DeleteFunc(t.behaviors(features...), func(id string) bool { return !slices.Contains(readFixtures()[id].Controllers, kind) })
}

// needing returns those that are skipped where a kind is not served.
func (t Target) needing(kind string) []string {
	return slices.DeleteFunc(t.behaviors(), func(id string) bool {
		use := readFixtures()[id]
		return !slices.Contains(use.Kinds(), kind) || slices.Contains(use.Optional, kind)
	})
}

// requires reports whether one of the run's behaviors requires a feature, so that no unnecessary probe creates objects.
func (t Target) requires(feature v1alpha1.Feature) bool { return len(t.behaviors(feature)) > 0 }

// createdForRun reports whether the cluster was created for the run, with all its controllers.
func (t Target) createdForRun() bool { return slices.Contains(t.Supported, v1alpha1.KCM) }

// served fails with the reason when the server does not serve a kind, and no other replaces it.
func (t Target) served(kind schema.GroupVersionKind) error {
	err := t.Client.Serves(kind)
	if meta.IsNoMatchError(err) {
		return skipReason{text: client.NotServed(kind)}
	}
	return err
}

// place sets the run's namespace, a unique name, and the labels and other additions of the run.
func (t Target) place(object *client.Object) {
	object.SetNamespace(t.Namespace)
	if object.GetName() == "sample" {
		object.SetName(t.Run + "-sample-" + rand.String(6))
	}
	object.SetLabels(labels.Merge(object.GetLabels(), t.Labels()))
	fixtures.MirrorImages(object.Object, t.ImageRegistry)
}

// IsOpenShift reports whether the server has OpenShift's security context constraints.
func IsOpenShift(with *client.Client) bool { return with.ServesGroup("security.openshift.io") }
