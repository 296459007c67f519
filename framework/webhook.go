package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/webhookserver"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// Review is what the API server asks a webhook about one request.
type Review = admissionv1.AdmissionRequest

// Webhook is a validating webhook of the spec's own. It allows and records what it is asked about, which is what carries
// the spec's label, until the spec tells it to hold or deny something.
type Webhook struct {
	// self is the user of the spec's own requests.
	self    string
	timeout time.Duration

	mu       sync.Mutex
	reviews  []Review
	decision map[string]decision
}

// decision is what becomes of the reviews of one object.
type decision struct {
	// denial is the message with which they are denied.
	denial string
	// held keeps those of others until it is closed: then it is decided otherwise.
	held chan struct{}
}

// WebhookOption changes a webhook before it is registered.
type WebhookOption func(*registrationv1.ValidatingWebhook)

const (
	// webhookReached bounds how long the API server may take to learn of a webhook and to reach it.
	webhookReached = 10 * time.Second
	// webhookTimeout is how long the API server waits for an answer, in seconds; the longest that Kubernetes allows.
	webhookTimeout = 30
	// unreachable is where nobody listens.
	unreachable = "https://127.0.0.1:1"
)

// OnOperations has other operations than deletes reviewed.
func OnOperations(operations ...registrationv1.OperationType) WebhookOption {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.Rules[0].Operations = operations }
}

// FailurePolicyFail has the API server refuse what it cannot have reviewed.
func FailurePolicyFail(webhook *registrationv1.ValidatingWebhook) {
	webhook.FailurePolicy = new(registrationv1.Fail)
}

// Unreachable makes the webhook one that cannot be reached.
func Unreachable(webhook *registrationv1.ValidatingWebhook) {
	webhook.ClientConfig.URL = new(unreachable)
	webhook.TimeoutSeconds = new(int32(1))
}

// CreateWebhook sets up a webhook and waits until the API server asks it. By default deletes of what the spec made are
// reviewed, and what cannot be reviewed is let through. The spec is skipped where the API server does not reach it.
func (c *Cluster) CreateWebhook(ctx context.Context, options ...WebhookOption) *Webhook {
	ginkgo.GinkgoHelper()
	webhook := &Webhook{self: c.whoAmI(ctx), timeout: c.session.WaitTimeout, decision: map[string]decision{}}
	server, err := webhookserver.Start(c.session.WebhookHost, admission.HandlerFunc(webhook.handle))
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	ginkgo.DeferCleanup(server.Close)
	canary := c.Create(ctx, fixtures.ConfigMap("webhook-canary"), WithLabel(client.CanaryLabel, "webhook"))
	c.register(ctx, server, options)
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, webhookReached, true, func(ctx context.Context) (bool, error) {
		c.Delete(ctx, canary, DryRun)
		return len(webhook.Reviews(canary)) > 0, nil
	})
	if wait.Interrupted(err) {
		ginkgo.Skip(fmt.Sprintf("the API server does not reach a webhook on %s (within %s)", server.URL, webhookReached))
	}
	return webhook
}

// register tells the API server to ask a server. The configuration has a second webhook, for a canary: when that one is
// asked the API server knows of both.
func (c *Cluster) register(ctx context.Context, server *webhookserver.Server, options []WebhookOption) {
	ginkgo.GinkgoHelper()
	reviewed, probed := c.validating("reviewed", server), c.validating("probed", server)
	inCanaries := func(operator metav1.LabelSelectorOperator) []metav1.LabelSelectorRequirement {
		return []metav1.LabelSelectorRequirement{{Key: client.CanaryLabel, Operator: operator}}
	}
	reviewed.ObjectSelector.MatchExpressions = inCanaries(metav1.LabelSelectorOpDoesNotExist)
	probed.ObjectSelector.MatchExpressions = inCanaries(metav1.LabelSelectorOpExists)
	for _, option := range options {
		option(&reviewed)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&registrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: registrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{Name: "reviews"},
		Webhooks:   []registrationv1.ValidatingWebhook{reviewed, probed},
	})
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode the webhook's configuration: %v", err))
	}
	c.Create(ctx, &Object{Object: content})
}

// validating is a webhook for the deletes of what carries the spec's label in the run's namespaces. It is no use to
// others: their requests never pass through it, and where it cannot be reached it is ignored.
func (c *Cluster) validating(name string, server *webhookserver.Server) registrationv1.ValidatingWebhook {
	return registrationv1.ValidatingWebhook{
		Name:                    name + "." + Domain,
		AdmissionReviewVersions: []string{"v1"},
		SideEffects:             new(registrationv1.SideEffectClassNone),
		FailurePolicy:           new(registrationv1.Ignore),
		TimeoutSeconds:          new(int32(webhookTimeout)),
		ClientConfig:            registrationv1.WebhookClientConfig{URL: &server.URL, CABundle: server.CABundle},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{client.RunLabel: c.session.Run}},
		ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{client.SpecLabel: c.id}},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.Delete},
			Rule:       registrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
		}},
	}
}

// Hold keeps the reviews of an object waiting, but for those of the spec's own requests, until it is allowed.
func (w *Webhook) Hold(object *Object) { w.decide(object, decision{held: make(chan struct{})}) }

// Deny denies the reviews of an object with a message, until it is allowed.
func (w *Webhook) Deny(object *Object, message string) { w.decide(object, decision{denial: message}) }

// Allow allows the reviews of an object, those that are held and all that are still to come.
func (w *Webhook) Allow(object *Object) { w.decide(object, decision{}) }

func (w *Webhook) decide(object *Object, decision decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before := w.decision[object.GetName()]; before.held != nil {
		close(before.held)
	}
	w.decision[object.GetName()] = decision
}

// Reviews are the reviews of an object so far, oldest first.
func (w *Webhook) Reviews(object *Object) []Review {
	w.mu.Lock()
	defer w.mu.Unlock()
	var reviews []Review
	for _, review := range w.reviews {
		if reviewedName(review) == object.GetName() {
			reviews = append(reviews, review)
		}
	}
	return reviews
}

// AwaitReview waits for the first review of an object that another user than the spec's asked for.
func (w *Webhook) AwaitReview(ctx context.Context, object *Object) Review {
	ginkgo.GinkgoHelper()
	var found []Review
	gomega.Eventually(ctx, func() []Review {
		found = nil
		for _, review := range w.Reviews(object) {
			if review.UserInfo.Username != w.self {
				found = append(found, review)
			}
		}
		return found
	}).WithPolling(session.MemoryPolling).ShouldNot(gomega.BeEmpty(), "a review of "+client.Title(object))
	return found[0]
}

// DeleteOptionsOf are the options that a reviewed delete carries.
func DeleteOptionsOf(review Review) metav1.DeleteOptions {
	ginkgo.GinkgoHelper()
	options := metav1.DeleteOptions{}
	if err := json.Unmarshal(review.Options.Raw, &options); err != nil {
		ginkgo.Fail(fmt.Sprintf("read the options of a reviewed delete: %v", err))
	}
	return options
}

// reviewedName is the name of the object that a review is about. Those of a deletecollection have it in the object only.
func reviewedName(review Review) string {
	if review.Name != "" {
		return review.Name
	}
	object := metav1.PartialObjectMetadata{}
	_ = json.Unmarshal(review.OldObject.Raw, &object) // a review of nothing has no name
	return object.Name
}

// handle records a review and answers it, when the time has come.
func (w *Webhook) handle(ctx context.Context, request admission.Request) admission.Response {
	w.record(request.AdmissionRequest)
	for {
		decision := w.decisionOn(reviewedName(request.AdmissionRequest))
		switch {
		case decision.denial != "":
			return admission.Denied(decision.denial)
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

func (w *Webhook) record(review Review) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reviews = append(w.reviews, review)
}

func (w *Webhook) decisionOn(name string) decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.decision[name]
}

// whoAmI is the user that the API server takes the spec's requests for.
func (c *Cluster) whoAmI(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	user, err := c.session.Unrecorded.WhoAmI(ctx)
	if err != nil {
		c.giveUp(ctx, Response{Asked: "set up a webhook", Err: err})
	}
	return user
}
