package webhooks

import (
	"bytes"
	"context"
	"net/http"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

var owner, child = fixtures.ConfigMap("owner"), fixtures.ConfigMap("child")

const specUser, otherUser = "system:admin", "system:node:a"

// reviewOf returns the review of a delete of an object.
func reviewOf(object *framework.Object, user string) admission.Request {
	return admission.Request{AdmissionRequest: Review{
		Name: object.GetName(), UserInfo: authenticationv1.UserInfo{Username: user},
		Options: runtime.RawExtension{Raw: []byte(`{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":5}`)},
	}}
}

// sent sends a review to a webhook and returns the response when there is one.
func sent(ctx context.Context, webhook *Webhook, request admission.Request) <-chan admission.Response {
	answers := make(chan admission.Response, 1)
	go func() { answers <- webhook.handle(ctx, request) }()
	return answers
}

// isHeld waits until a webhook has received this many reviews of an object, and checks that the last one has no response.
func isHeld(g Gomega, webhook *Webhook, object *framework.Object, times int, answers <-chan admission.Response) {
	g.Eventually(func() []Review { return webhook.Reviews(object) }).Should(HaveLen(times))
	g.Consistently(answers).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
}

func allowed() OmegaMatcher { return HaveField("Allowed", true) }

func denied(message string) OmegaMatcher {
	return And(HaveField("Allowed", false), HaveField("Result.Code", BeEquivalentTo(http.StatusForbidden)), HaveField("Result.Message", message))
}

func TestWebhook_Allow(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)

	g.Expect(webhook.handle(t.Context(), reviewOf(owner, specUser))).To(allowed())
	g.Expect(webhook.handle(t.Context(), reviewOf(child, otherUser))).To(allowed())
	g.Expect(webhook.handle(t.Context(), reviewOf(owner, otherUser))).To(allowed())

	reviews := webhook.Reviews(owner)
	g.Expect(reviews).To(HaveLen(2), "those of the object, oldest first")
	g.Expect(reviews[0].UserInfo.Username).To(Equal(specUser))
	g.Expect(reviews[1].UserInfo.Username).To(Equal(otherUser))
	g.Expect(DeleteOptionsOf(reviews[0])).To(Equal(metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "DeleteOptions"}, GracePeriodSeconds: new(int64(5)),
	}))
}

func TestWebhook_ManyReviews(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	for range maxReviews {
		webhook.handle(t.Context(), reviewOf(owner, otherUser))
	}
	g.Expect(webhook.lost()).To(BeEmpty())
	for range 3 {
		g.Expect(webhook.handle(t.Context(), reviewOf(child, otherUser))).To(allowed())
	}
	g.Expect(webhook.reviews).To(HaveLen(maxReviews))
	g.Expect(webhook.lost()).To(Equal("3 reviews were not recorded: a webhook records at most 2000 reviews and 64 MiB"))
}

func TestWebhook_LargeReviews(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	const sent, size = 100, 3 << 20
	for range sent {
		large := reviewOf(owner, otherUser)
		large.UserInfo.Extra = map[string]authenticationv1.ExtraValue{"example.com/a": {strings.Repeat("x", size)}}
		large.OldObject.Raw = bytes.Repeat([]byte(" "), size)
		webhook.handle(t.Context(), large)
	}
	goruntime.GC()
	var kept goruntime.MemStats
	goruntime.ReadMemStats(&kept)
	g.Expect(kept.HeapAlloc).To(BeNumerically("<", 2*maxSize), "%d MiB were sent", 2*sent*size>>20)
	g.Expect(len(webhook.reviews) + webhook.dropped).To(Equal(sent))
	g.Expect(webhook.lost()).To(ContainSubstring("reviews were not recorded"))
}

func TestWebhook_SameNameInAnotherNamespace(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	object := fixtures.ConfigMap("owner")
	object.SetNamespace("dcabc-1")
	webhook.Deny(object, "not that one")
	for namespace, response := range map[string]OmegaMatcher{"dcabc-1": denied("not that one"), "copied-label": allowed()} {
		review := reviewOf(object, otherUser)
		review.Namespace = namespace
		g.Expect(webhook.handle(t.Context(), review)).To(response)
	}
	g.Expect(webhook.Reviews(object)).To(ConsistOf(HaveField("Namespace", "dcabc-1")))

	namespace := &framework.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName("dcabc-spare")
	review := reviewOf(namespace, otherUser)
	review.Namespace, review.Resource.Resource = "dcabc-spare", "namespaces"
	webhook.handle(t.Context(), review)
	g.Expect(webhook.Reviews(namespace)).To(HaveLen(1), "the namespace of a review of a namespace is its name")
}

func TestWebhook_Deny(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	webhook.Deny(owner, "not that one")
	g.Expect(webhook.handle(t.Context(), reviewOf(owner, specUser))).To(denied("not that one"))
	g.Expect(webhook.handle(t.Context(), reviewOf(owner, otherUser))).To(denied("not that one"))
	g.Expect(webhook.handle(t.Context(), reviewOf(child, otherUser))).To(allowed(), "it is about one object")
	webhook.Allow(owner)
	g.Expect(webhook.handle(t.Context(), reviewOf(owner, otherUser))).To(allowed())
}

func TestWebhook_DenyTimes(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	webhook.DenyTimes(owner, 2, "not yet")
	for _, user := range []string{otherUser, specUser, otherUser} {
		g.Expect(webhook.handle(t.Context(), reviewOf(owner, user))).To(denied("not yet"), user)
	}
	g.Expect(webhook.handle(t.Context(), reviewOf(owner, otherUser))).To(allowed())
	g.Expect(webhook.handle(t.Context(), reviewOf(owner, specUser))).To(allowed())
}

func TestWebhook_Hold(t *testing.T) {
	for _, test := range []struct {
		name   string
		decide func(*Webhook)
		want   OmegaMatcher
	}{
		{"until they are allowed", func(w *Webhook) { w.Allow(owner) }, allowed()},
		{"until they are denied", func(w *Webhook) { w.Deny(owner, "not that one") }, denied("not that one")},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			webhook := newWebhook(nil, specUser)
			webhook.Hold(owner)
			g.Expect(webhook.handle(t.Context(), reviewOf(owner, specUser))).To(allowed(), "the spec's own go through")

			answers := sent(t.Context(), webhook, reviewOf(owner, otherUser))
			isHeld(g, webhook, owner, 2, answers)
			webhook.Hold(owner)
			isHeld(g, webhook, owner, 2, answers)
			test.decide(webhook)

			g.Eventually(answers).Should(Receive(test.want))
		})
	}
}

func TestWebhook_HoldDependents(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	webhook.HoldDependents("dcabc-1", owner.GetName())
	review := reviewOf(child, otherUser)
	review.Namespace = "dcabc-1"
	g.Expect(webhook.handle(t.Context(), review)).To(allowed(), "it has no owner")
	review.Object.Raw = []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"ownerReferences": [{"name": "` + owner.GetName() + `", "uid": "an-uid"}]}}`)
	elsewhere := review
	elsewhere.Namespace = "dcabc-2"
	g.Expect(webhook.handle(t.Context(), elsewhere)).To(allowed(), "the owner is in another namespace")

	answers := sent(t.Context(), webhook, review)
	exists := owner.DeepCopy()
	exists.SetUID("an-uid")
	RegisterTestingT(t)
	g.Expect(webhook.AwaitDependent(t.Context(), exists).GetOwnerReferences()).To(HaveLen(1))
	g.Consistently(answers).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
	webhook.AllowDependents("dcabc-1", owner.GetName())
	g.Eventually(answers).Should(Receive(allowed()))
}

func TestWebhook_HeldReviewEndsWithRequest(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	webhook.Hold(owner)
	ctx, end := context.WithCancel(t.Context())
	answers := sent(ctx, webhook, reviewOf(owner, otherUser))
	isHeld(g, webhook, owner, 1, answers)
	end()
	g.Eventually(answers).Should(Receive(allowed()))
}

func TestWebhook_Patch(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	webhook.Patch(owner)
	response := webhook.handle(t.Context(), reviewOf(owner, specUser))
	g.Expect(response).To(allowed())
	g.Expect(response.Complete(admission.Request{})).To(Succeed())
	g.Expect(response.Patch).To(ContainSubstring("/metadata/labels/"))
	g.Expect(webhook.handle(t.Context(), reviewOf(child, specUser)).Patch).To(BeEmpty(), "it is about one object")
}

func TestWebhook_DuringReview(t *testing.T) {
	g := NewWithT(t)
	webhook, done := newWebhook(nil, specUser), 0
	webhook.DuringReview(owner, func() { done++ })
	for range 2 {
		g.Expect(webhook.handle(t.Context(), reviewOf(owner, specUser))).To(allowed())
		g.Expect(done).To(Equal(1))
	}
}

func TestReview_OwnUserOmitted(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	webhook.Deny(owner, "not that one")
	webhook.handle(t.Context(), reviewOf(owner, specUser))
	confirmed := reviewOf(owner, otherUser)
	confirmed.OldObject.Raw = []byte(`{"metadata": {"uid": "an-uid", "deletionGracePeriodSeconds": 5}}`)
	webhook.handle(t.Context(), confirmed)

	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	shown := webhook.reviews[1].observation(webhook.self, kind)
	g.Expect(webhook.reviews[0].observation(webhook.self, kind).User).To(BeEmpty(), "nobody else needs to know whose credentials the run has")
	g.Expect(shown.User).To(Equal(otherUser))
	g.Expect(shown.Object).To(Equal(v1alpha1.ObjectReference{Version: "v1", Kind: "Pod", Name: owner.GetName(), UID: "an-uid"}))
	g.Expect(shown.GraceSeconds).To(HaveValue(BeEquivalentTo(5)))
	g.Expect(shown.StoredGraceSeconds).To(HaveValue(BeEquivalentTo(5)))
	g.Expect(shown).To(And(HaveField("Allowed", false), HaveField("Message", "not that one")))
}

func TestWebhook_OnlyRequestsOfTheRun(t *testing.T) {
	g := NewWithT(t)
	cluster := framework.NewCluster(&session.Session{Config: session.Config{Run: "dcabc"}}, "x7k2p")
	webhook := webhook(cluster, "reviewed", unreachableConfig())
	g.Expect(webhook.NamespaceSelector.MatchLabels).To(Equal(map[string]string{client.RunLabel: "dcabc"}))
	g.Expect(webhook.ObjectSelector.MatchLabels).To(Equal(map[string]string{client.SpecLabel: "x7k2p"}))
	g.Expect(webhook.FailurePolicy).To(HaveValue(Equal(registrationv1.Ignore)))
	g.Expect(webhook.TimeoutSeconds).To(HaveValue(BeNumerically("<=", 10)))
}

func TestWebhook_AwaitReview(t *testing.T) {
	g := NewWithT(t)
	webhook := newWebhook(nil, specUser)
	webhook.handle(t.Context(), reviewOf(owner, specUser))
	webhook.handle(t.Context(), reviewOf(owner, otherUser))
	written := reviewOf(owner, otherUser)
	written.OldObject.Raw = []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": [{"manager": "other"}]}}`)
	webhook.handle(t.Context(), written)
	RegisterTestingT(t)
	g.Expect(webhook.AwaitReview(t.Context(), owner).UserInfo.Username).To(Equal(otherUser))
	g.Expect(webhook.AwaitReviews(t.Context(), owner, 2)).To(HaveLen(2), "also those of an object that others have written meanwhile")
}
