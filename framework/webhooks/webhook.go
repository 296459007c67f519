package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// Webhook is an admission webhook of the spec's own. It allows and records what it is asked about, which is what carries the
// spec's label, until the spec tells it to do otherwise with something. It tests reviews; where they are received is a
// receiver's part.
type Webhook struct {
	// self is the user of the spec's own requests.
	self string

	mu       sync.Mutex
	reviews  []*review
	decision map[string]decision
}

// decision is what becomes of the reviews of one object.
type decision struct {
	// denial is the message with which they are denied.
	denial string
	// held keeps those of others until it is closed: then it is decided otherwise.
	held chan struct{}
	// patched answers them with a change.
	patched bool
	// meanwhile is done before the first is answered.
	meanwhile func()
}

// Hold keeps the reviews of an object waiting, but for those of the spec's own requests, until it is allowed.
func (w *Webhook) Hold(object *framework.Object) {
	w.decide(object, decision{held: make(chan struct{})})
}

// Deny denies the reviews of an object with a message, until it is allowed.
func (w *Webhook) Deny(object *framework.Object, message string) {
	w.decide(object, decision{denial: message})
}

// Allow allows the reviews of an object, those that are held and all that are still to come.
func (w *Webhook) Allow(object *framework.Object) { w.decide(object, decision{}) }

// Patch allows the reviews of an object with a patch that gives it a label. Only a mutating webhook may do so.
func (w *Webhook) Patch(object *framework.Object) { w.decide(object, decision{patched: true}) }

// Meanwhile has something done while the first review of an object waits for its answer. All are allowed.
func (w *Webhook) Meanwhile(object *framework.Object, act func()) {
	w.decide(object, decision{meanwhile: sync.OnceFunc(func() {
		defer ginkgo.GinkgoRecover()
		act()
	})})
}

func (w *Webhook) decide(object *framework.Object, decision decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before := w.decision[object.GetName()]; before.held != nil {
		close(before.held)
	}
	w.decision[object.GetName()] = decision
}

// Reviews are the reviews of an object so far, oldest first. The server asks again for an object that was written while
// it was under review; where others have written it, and nobody else, that is no other review.
func (w *Webhook) Reviews(object *framework.Object) []Review {
	w.mu.Lock()
	defer w.mu.Unlock()
	var reviews []Review
	for _, review := range w.reviews {
		if reviewedName(review.Review) != object.GetName() {
			continue
		}
		if last := len(reviews) - 1; last >= 0 && againForOthers(reviews[last], review.Review) {
			continue
		}
		reviews = append(reviews, review.Review)
	}
	return reviews
}

// againForOthers says that a review is the one before it, of an object that others have written meanwhile.
func againForOthers(before, review Review) bool {
	return review.Operation == before.Operation && review.UserInfo.Username == before.UserInfo.Username &&
		bytes.Equal(review.Options.Raw, before.Options.Raw) && framework.ChangedByOtherManagers(OldObjectOf(before), OldObjectOf(review))
}

// reviewsOfOthers are the reviews of an object so far that another user than the spec's asked for.
func (w *Webhook) reviewsOfOthers(object *framework.Object) []Review {
	var reviews []Review
	for _, review := range w.Reviews(object) {
		if review.UserInfo.Username != w.self {
			reviews = append(reviews, review)
		}
	}
	return reviews
}

// AwaitReview waits for the first review of an object that another user than the spec's asked for.
func (w *Webhook) AwaitReview(ctx context.Context, object *framework.Object) Review {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() []Review { return w.reviewsOfOthers(object) }).WithPolling(session.MemoryPolling).ShouldNot(
		gomega.BeEmpty(), "a review of "+client.Title(object))
	return w.reviewsOfOthers(object)[0]
}

// SkipIfHurried skips a spec on a write that calls off the collector's delete of an object, where others have written
// that, too: so that they cannot keep it from deleting the collector then asks for whatever version there is
// (deleteObject in pkg/controller/garbagecollector/operations.go).
func (w *Webhook) SkipIfHurried(object *framework.Object) {
	ginkgo.GinkgoHelper()
	for _, review := range w.Reviews(object) {
		only := DeleteOptionsOf(review).Preconditions
		if (only == nil || only.ResourceVersion == nil) && framework.ChangedByOtherManagers(object, OldObjectOf(review)) {
			ginkgo.Skip(fmt.Sprintf("others write a %s when it is new, and the collector deletes whatever they made of it", object.GetKind()))
		}
	}
}

// handle records a review and answers it, when the time has come.
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

// test answers a review, when the time has come.
func (w *Webhook) admit(ctx context.Context, request Review) admission.Response {
	for {
		decision := w.decisionOn(reviewedName(request))
		switch {
		case decision.denial != "":
			return admission.Denied(decision.denial)
		case decision.patched:
			return labelling()
		case decision.meanwhile != nil:
			decision.meanwhile()
			return admission.Allowed("")
		case decision.held == nil, request.UserInfo.Username == w.self:
			return admission.Allowed("")
		}
		select {
		case <-decision.held: // and now decided otherwise
		case <-ctx.Done():
			return admission.Allowed("")
		}
	}
}

// labelling is an answer with a patch that gives a label.
func labelling() admission.Response {
	response := admission.Allowed("")
	response.Patch = []byte(`[{"op": "add", "path": "/metadata/labels/patched", "value": "yes"}]`)
	response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	return response
}

func (w *Webhook) record(asked Review) *review {
	w.mu.Lock()
	defer w.mu.Unlock()
	recorded := &review{Review: asked, at: time.Now()}
	w.reviews = append(w.reviews, recorded)
	return recorded
}

func (w *Webhook) decisionOn(name string) decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.decision[name]
}
