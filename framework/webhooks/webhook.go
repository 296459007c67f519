package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/webhookserver"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Webhook is an admission webhook of the spec. It allows and records reviews of objects with the spec's label, unless the spec decides
// otherwise for an object. A webhookserver.Receiver receives the reviews.
type Webhook struct {
	// cluster is that of the spec, and self the user of its requests.
	cluster *framework.Cluster
	self    string

	mu      sync.Mutex
	reviews []*review
	// size is the size of the recorded reviews in bytes, and dropped the number of those that were not recorded.
	size, dropped int
	// decision has the decisions on objects by their names, and on dependents by the names of their owners.
	decision map[any]decision
	// timeout limits the waits for reviews.
	timeout time.Duration
}

// Within makes the webhook wait for reviews for at least this long: for those of a controller that others may keep busy.
func (w *Webhook) Within(timeout time.Duration) *Webhook {
	w.timeout = timeout
	return w
}

// dependentsOf is the key for the decision on all objects with a reference to an owner of this name.
type dependentsOf types.NamespacedName

const (
	// maxReviews and maxSize limit what a webhook records, in reviews and in bytes. Specs receive a few reviews of a few KiB each, and those of a Job
	// with many pods some 1,100.
	maxReviews, maxSize = 2_000, 64 << 20
)

func newWebhook(cluster *framework.Cluster, self string) *Webhook {
	return &Webhook{cluster: cluster, self: self, decision: map[any]decision{}}
}

// decision is the response to the reviews of one object.
type decision struct {
	// denial is the message of a denial.
	denial string
	// times is how many reviews of other users are denied before all are allowed; 0 for no limit.
	times int
	// onlyTerminating restricts the denial to reviews of the terminating object.
	onlyTerminating bool
	// warning is the warning of a response that allows the request.
	warning string
	// held delays reviews of other users until it is closed, when there is another decision.
	held chan struct{}
	// patched responds with a patch.
	patched bool
	// duringReview is called before the first response.
	duringReview func()
}

// Hold delays the reviews of an object until Allow, except those of the spec's own requests.
func (w *Webhook) Hold(object *framework.Object) {
	w.decide(nameOf(object), decision{held: make(chan struct{})})
}

// HoldDependents delays the reviews of objects with a reference to an owner of this name until AllowDependents, as Hold does. The owner need
// not exist yet.
func (w *Webhook) HoldDependents(namespace, owner string) {
	w.decide(dependentsOf{namespace, owner}, decision{held: make(chan struct{})})
}

// AllowDependents allows the reviews that HoldDependents delays.
func (w *Webhook) AllowDependents(namespace, owner string) {
	w.decide(dependentsOf{namespace, owner}, decision{})
}

// Deny denies the reviews of an object with a message, until Allow.
func (w *Webhook) Deny(object *framework.Object, message string) {
	w.decide(nameOf(object), decision{denial: message})
}

// DenyTimes denies a number of reviews of an object with a message, and allows those after them. Reviews of the spec's own requests do not
// count.
func (w *Webhook) DenyTimes(object *framework.Object, times int, message string) {
	w.decide(nameOf(object), decision{denial: message, times: times})
}

// DenyTerminating denies the reviews of an object with a message while the object is terminating, and allows those before.
func (w *Webhook) DenyTerminating(object *framework.Object, message string) {
	w.decide(nameOf(object), decision{denial: message, onlyTerminating: true})
}

// Warn allows the reviews of an object with a warning.
func (w *Webhook) Warn(object *framework.Object, warning string) {
	w.decide(nameOf(object), decision{warning: warning})
}

// Allow allows the reviews of an object, including those that are delayed.
func (w *Webhook) Allow(object *framework.Object) { w.decide(nameOf(object), decision{}) }

// Patch allows the reviews of an object with a patch that adds a label. Only mutating webhooks support that.
func (w *Webhook) Patch(object *framework.Object) { w.decide(nameOf(object), decision{patched: true}) }

// DuringReview calls a function while the first review of an object waits for its response. All reviews are allowed.
func (w *Webhook) DuringReview(object *framework.Object, run func()) {
	w.decide(nameOf(object), decision{duringReview: sync.OnceFunc(func() {
		defer ginkgo.GinkgoRecover()
		run()
	})})
}

func (w *Webhook) decide(key any, decision decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before := w.decision[key]; before.held != nil {
		close(before.held)
	}
	w.decision[key] = decision
}

// Reviews returns the reviews of an object so far, oldest first. The server repeats a review when the object was written meanwhile; a
// repetition that only other managers caused is left out.
func (w *Webhook) Reviews(object *framework.Object) []Review {
	w.mu.Lock()
	defer w.mu.Unlock()
	var reviews []Review
	for _, review := range w.reviews {
		if webhookserver.NameOf(review.Review) != nameOf(object) {
			continue
		}
		if last := len(reviews) - 1; last >= 0 && isRepeatedForOtherManagers(reviews[last], review.Review) {
			continue
		}
		reviews = append(reviews, review.Review)
	}
	return reviews
}

// isRepeatedForOtherManagers reports whether a review repeats the previous one because other managers have written the object meanwhile.
func isRepeatedForOtherManagers(before, review Review) bool {
	return review.Operation == before.Operation && review.UserInfo.Username == before.UserInfo.Username &&
		bytes.Equal(review.Options.Raw, before.Options.Raw) && framework.ChangedByOtherManagers(OldObjectOf(before), OldObjectOf(review))
}

// received returns the reviews that match, oldest first, with all repetitions.
func (w *Webhook) received(matches func(Review) bool) []Review {
	w.mu.Lock()
	defer w.mu.Unlock()
	var reviews []Review
	for _, review := range w.reviews {
		if matches(review.Review) {
			reviews = append(reviews, review.Review)
		}
	}
	return reviews
}

// AwaitReview waits for the first review of an object for a request of another user than the spec's.
func (w *Webhook) AwaitReview(ctx context.Context, object *framework.Object) Review {
	ginkgo.GinkgoHelper()
	return w.AwaitReviews(ctx, object, 1)[0]
}

// AwaitReviews waits for a number of reviews of an object for requests of other users than the spec's. There may be more.
func (w *Webhook) AwaitReviews(ctx context.Context, object *framework.Object, count int) []Review {
	ginkgo.GinkgoHelper()
	return w.await(ctx, count, "reviews of "+client.Title(object), func(review Review) bool {
		return webhookserver.NameOf(review) == nameOf(object) && review.UserInfo.Username != w.self
	})
}

// AwaitDependent waits for the first review of an object with a reference to an owner, and returns the object.
func (w *Webhook) AwaitDependent(ctx context.Context, owner *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	return objectOf(w.await(ctx, 1, "a review of a dependent of "+client.Title(owner), func(review Review) bool {
		return slices.ContainsFunc(webhookserver.MetadataOf(review).OwnerReferences, func(reference metav1.OwnerReference) bool {
			return reference.UID == owner.GetUID()
		})
	})[0])
}

// await waits for a number of reviews that match.
func (w *Webhook) await(ctx context.Context, count int, what string, matches func(Review) bool) []Review {
	ginkgo.GinkgoHelper()
	poll := func() ([]Review, error) { return w.received(matches), nil }
	enough := gomega.WithTransform(func(reviews []Review) int { return len(reviews) }, gomega.BeNumerically(">=", count))
	eventually := gomega.Eventually(ctx, poll).WithPolling(session.MemoryPolling)
	if w.timeout > 0 {
		eventually = eventually.WithTimeout(w.cluster.Session().AtLeast(w.timeout))
	}
	eventually.Should(framework.Awaited(w.cluster, poll, enough), what)
	return w.received(matches)
}

// SkipIfWrittenByOthers skips a spec about a write that cancels the collector's delete of an object, when other managers have written the
// object too: the collector then deletes it without a precondition on its version (deleteObject in
// pkg/controller/garbagecollector/operations.go).
func (w *Webhook) SkipIfWrittenByOthers(object *framework.Object) {
	ginkgo.GinkgoHelper()
	for _, review := range w.Reviews(object) {
		only := DeleteOptionsOf(review).Preconditions
		if (only == nil || only.ResourceVersion == nil) && framework.ChangedByOtherManagers(object, OldObjectOf(review)) {
			ginkgo.Skip(fmt.Sprintf("another controller updates new objects of kind %s, so the garbage collector deletes any version of them", object.GetKind()))
		}
	}
}

// handle records a review and responds.
func (w *Webhook) handle(ctx context.Context, request admission.Request) admission.Response {
	recorded := w.record(request.AdmissionRequest)
	response := w.admit(ctx, request.AdmissionRequest)
	w.mu.Lock()
	defer w.mu.Unlock()
	recorded.took, recorded.allowed = time.Since(recorded.at), response.Allowed
	if response.Result != nil {
		recorded.message = response.Result.Message
	}
	return response
}

// admit responds to a review as decided, possibly after a delay.
func (w *Webhook) admit(ctx context.Context, request Review) admission.Response {
	for {
		decision := w.decisionOn(request)
		switch {
		case decision.denial != "" && (!decision.onlyTerminating || webhookserver.MetadataOf(request).DeletionTimestamp != nil):
			return admission.Denied(decision.denial)
		case decision.warning != "":
			return admission.Allowed("").WithWarnings(decision.warning)
		case decision.patched:
			return labeling()
		case decision.duringReview != nil:
			decision.duringReview()
			return admission.Allowed("")
		case decision.held == nil, request.UserInfo.Username == w.self:
			return admission.Allowed("")
		}
		select {
		case <-decision.held: // there is another decision now
		case <-ctx.Done():
			return admission.Allowed("")
		}
	}
}

// labeling returns a response with a patch that adds a label.
func labeling() admission.Response {
	response := admission.Allowed("")
	response.Patch = []byte(`[{"op": "add", "path": "/metadata/labels/patched", "value": "yes"}]`)
	response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	return response
}

// record records a review, or counts it if there are too many.
func (w *Webhook) record(asked Review) *review {
	w.mu.Lock()
	defer w.mu.Unlock()
	recorded := &review{Review: asked, at: time.Now()}
	if len(w.reviews) == maxReviews || w.size+asked.Size() > maxSize {
		w.dropped++
		return recorded
	}
	w.reviews, w.size = append(w.reviews, recorded), w.size+asked.Size()
	return recorded
}

// lost describes the reviews that were not recorded; empty when all were.
func (w *Webhook) lost() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dropped == 0 {
		return ""
	}
	return fmt.Sprintf("%d reviews were not recorded: a webhook records at most %d reviews and %d MiB", w.dropped, maxReviews, maxSize>>20)
}

func (w *Webhook) decisionOn(request Review) decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	named := webhookserver.NameOf(request)
	for _, owner := range webhookserver.MetadataOf(request).OwnerReferences {
		if decision, ok := w.decision[dependentsOf{Namespace: named.Namespace, Name: owner.Name}]; ok {
			return decision
		}
	}
	decided := w.decision[named]
	if decided.times > 0 && request.UserInfo.Username != w.self {
		w.decision[named] = decided.next()
	}
	return decided
}

// next returns the decision after a denial that is counted.
func (d decision) next() decision {
	if d.times--; d.times == 0 {
		return decision{}
	}
	return d
}
