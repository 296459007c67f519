package webhooks

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/webhookserver"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Review is the request that the API server sends to a webhook for review.
type Review = webhookserver.Review

// review is a recorded review, with its response once there is one.
type review struct {
	Review
	at      time.Time
	took    time.Duration
	allowed bool
	message string
}

// DeleteOptionsOf returns the options of a reviewed delete.
func DeleteOptionsOf(review Review) metav1.DeleteOptions {
	ginkgo.GinkgoHelper()
	options := metav1.DeleteOptions{}
	if err := json.Unmarshal(review.Options.Raw, &options); err != nil {
		ginkgo.Fail(fmt.Sprintf("read the options of a reviewed delete: %v", err))
	}
	return options
}

// OldObjectOf returns the stored object of a review.
func OldObjectOf(review Review) *framework.Object {
	ginkgo.GinkgoHelper()
	object := &framework.Object{}
	if err := object.UnmarshalJSON(review.OldObject.Raw); err != nil {
		ginkgo.Fail(fmt.Sprintf("read the oldObject of a review: %v", err))
	}
	return object
}

// objectOf returns the object of a review, as it would be stored.
func objectOf(review Review) *framework.Object {
	ginkgo.GinkgoHelper()
	object := &framework.Object{}
	if err := object.UnmarshalJSON(review.Object.Raw); err != nil {
		ginkgo.Fail(fmt.Sprintf("read the object of a review: %v", err))
	}
	return object
}

func nameOf(object *framework.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// observation converts a review for reports. It omits the user of the run's own requests, whose name is private. The kind is that of the
// object, not that of a subresource such as an eviction.
func (r *review) observation(self string, kind schema.GroupVersionKind) v1alpha1.Review {
	object, options := webhookserver.MetadataOf(r.Review), metav1.DeleteOptions{}
	_ = json.Unmarshal(r.Options.Raw, &options) // other options have none of these fields
	observed := v1alpha1.Review{
		At: r.at, Latency: r.took, Operation: string(r.Operation), Subresource: r.SubResource, User: r.UserInfo.Username,
		Object: v1alpha1.ObjectReference{
			Group: kind.Group, Version: kind.Version, Resource: r.Resource.Resource, Kind: kind.Kind,
			Namespace: r.Namespace, Name: webhookserver.NameOf(r.Review).Name, UID: object.UID, Canary: object.Labels[client.CanaryLabel] != "",
		},
		DryRun: r.DryRun != nil && *r.DryRun, GraceSeconds: options.GracePeriodSeconds, Preconditions: options.Preconditions,
		StoredGraceSeconds: object.DeletionGracePeriodSeconds, Allowed: r.allowed, Message: r.message,
	}
	if options.PropagationPolicy != nil {
		observed.PropagationPolicy = string(*options.PropagationPolicy)
	}
	if observed.User == self {
		observed.User = ""
	}
	return observed
}

// Observations returns the reviews so far, for reports.
func (w *Webhook) Observations(with *client.Client) []v1alpha1.Review {
	w.mu.Lock()
	defer w.mu.Unlock()
	var observed []v1alpha1.Review
	for _, review := range w.reviews {
		resource := schema.GroupVersionResource(review.Resource)
		observed = append(observed, review.observation(w.self, with.KindOf(resource)))
	}
	return observed
}
