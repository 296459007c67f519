package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/webhookserver"
)

// receiver is where the API server's reviews arrive. Who starts one says who judges them, so that a judge need not know
// whether they come to a port of this machine or, once, to a Service in the cluster.
type receiver interface {
	// ClientConfig is how the API server finds it.
	ClientConfig() registrationv1.WebhookClientConfig
	// Close ends it.
	Close() error
}

// WebhookOption changes a webhook before it is registered.
type WebhookOption func(*registrationv1.ValidatingWebhook)

const (
	// webhookReached bounds how long the API server may take to learn of a webhook and to reach it.
	webhookReached = 10 * time.Second
	// webhookPolling is how often it is looked whether it has.
	webhookPolling = 20 * time.Millisecond
	// webhookTimeout is how long the API server waits for an answer, in seconds: longer than a spec holds a review.
	webhookTimeout = 10
	// unreachable is where nobody listens.
	unreachable = "https://127.0.0.1:1"
)

// The kinds of webhook configurations.
const (
	validatingConfiguration = "ValidatingWebhookConfiguration"
	mutatingConfiguration   = "MutatingWebhookConfiguration"
)

// OnOperations has other operations than deletes reviewed.
func OnOperations(operations ...registrationv1.OperationType) WebhookOption {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.Rules[0].Operations = operations }
}

// OnResources has only these resources reviewed, of whatever group: "pods", "pods/eviction". Without it subresources are not.
func OnResources(resources ...string) WebhookOption {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.Rules[0].Resources = resources }
}

// Selecting has only objects with a label reviewed.
func Selecting(label, value string) WebhookOption {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.ObjectSelector.MatchLabels[label] = value }
}

// MatchCondition has only requests reviewed for which a CEL expression is true.
func MatchCondition(expression string) WebhookOption {
	return func(webhook *registrationv1.ValidatingWebhook) {
		webhook.MatchConditions = append(webhook.MatchConditions, registrationv1.MatchCondition{Name: "condition", Expression: expression})
	}
}

// SideEffects says what else a webhook does when it is asked; nothing, without it.
func SideEffects(class registrationv1.SideEffectClass) WebhookOption {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.SideEffects = &class }
}

// FailurePolicyFail has the API server refuse what it cannot have reviewed.
func FailurePolicyFail(webhook *registrationv1.ValidatingWebhook) {
	webhook.FailurePolicy = new(registrationv1.Fail)
}

// Unreachable makes the webhook one that cannot be reached.
func Unreachable(webhook *registrationv1.ValidatingWebhook) {
	webhook.ClientConfig = unserved()
	webhook.TimeoutSeconds = new(int32(1))
}

func unserved() registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{URL: new(unreachable)}
}

// CreateWebhook sets up a validating webhook and waits until the API server asks it. By default deletes of what the spec made
// are reviewed, and what cannot be reviewed is let through. The spec is skipped where the API server does not reach it.
func (c *Cluster) CreateWebhook(ctx context.Context, options ...WebhookOption) *Webhook {
	ginkgo.GinkgoHelper()
	return c.serveWebhook(ctx, validatingConfiguration, options)
}

// CreateMutatingWebhook is CreateWebhook, of one that may answer with a patch.
func (c *Cluster) CreateMutatingWebhook(ctx context.Context, options ...WebhookOption) *Webhook {
	ginkgo.GinkgoHelper()
	return c.serveWebhook(ctx, mutatingConfiguration, options)
}

// TryRegisterWebhook registers a validating webhook that nobody serves, and returns what the API server says to that.
func (c *Cluster) TryRegisterWebhook(ctx context.Context, options ...WebhookOption) Response {
	ginkgo.GinkgoHelper()
	webhook := c.webhook("unserved", unserved())
	for _, option := range options {
		option(&webhook)
	}
	return c.TryCreate(ctx, configuration(validatingConfiguration, webhook))
}

// serveWebhook begins to receive reviews, registers a webhook for them, and waits until the API server asks it.
func (c *Cluster) serveWebhook(ctx context.Context, kind string, options []WebhookOption) *Webhook {
	ginkgo.GinkgoHelper()
	webhook := &Webhook{self: c.WhoAmI(ctx), decision: map[string]decision{}}
	receiver := c.receive(webhook)
	canary := c.Create(ctx, fixtures.ConfigMap("webhook-canary"), c.named("webhook-canary-"+rand.String(6)), WithLabel(client.CanaryLabel, "webhook"))
	registered := c.register(ctx, kind, receiver, options)
	c.webhooks = append(c.webhooks, webhook)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		c.session.Harness.Delete(ctx, registered, metav1.DeleteOptions{}) // else at the run's end
	})
	patience := c.session.Slowed(webhookReached)
	err := wait.PollUntilContextTimeout(ctx, webhookPolling, patience, true, func(context.Context) (bool, error) {
		c.Delete(ctx, canary, DryRun) // in its own time: one that is cut off says nothing
		return len(webhook.Reviews(canary)) > 0, nil
	})
	if wait.Interrupted(err) {
		ginkgo.Skip(fmt.Sprintf("the API server does not reach a webhook at %s within %s: name an address that it can reach (--webhook-host)",
			*receiver.ClientConfig().URL, patience))
	}
	return webhook
}

// receive begins to receive reviews on this machine, for a webhook to judge.
func (c *Cluster) receive(webhook *Webhook) receiver {
	ginkgo.GinkgoHelper()
	server, err := webhookserver.Start(c.session.WebhookHost, admission.HandlerFunc(webhook.handle))
	if err != nil {
		ginkgo.Skip(fmt.Sprintf("%v: name an address of this machine (--webhook-host)", err))
	}
	ginkgo.DeferCleanup(server.Close)
	return server
}

// register tells the API server to ask a receiver. The configuration has a second webhook, for a canary: when that one is asked
// the API server knows of both.
func (c *Cluster) register(ctx context.Context, kind string, receiver receiver, options []WebhookOption) *Object {
	ginkgo.GinkgoHelper()
	reviewed, probed := c.webhook("reviewed", receiver.ClientConfig()), c.webhook("probed", receiver.ClientConfig())
	inCanaries := func(operator metav1.LabelSelectorOperator) []metav1.LabelSelectorRequirement {
		return []metav1.LabelSelectorRequirement{{Key: client.CanaryLabel, Operator: operator}}
	}
	reviewed.ObjectSelector.MatchExpressions = inCanaries(metav1.LabelSelectorOpDoesNotExist)
	probed.ObjectSelector.MatchExpressions = inCanaries(metav1.LabelSelectorOpExists)
	for _, option := range options {
		option(&reviewed)
	}
	return c.Create(ctx, configuration(kind, reviewed, probed))
}

// configuration is a manifest of webhooks. Mutating ones have the fields of validating ones, and one more that has a default.
func configuration(kind string, webhooks ...registrationv1.ValidatingWebhook) *Object {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&registrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: registrationv1.SchemeGroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: "reviews-" + rand.String(6)},
		Webhooks:   webhooks,
	})
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode the webhook's configuration: %v", err))
	}
	return &Object{Object: content}
}

// webhook is a webhook for the deletes of what carries the spec's label in the run's namespaces. It is no use to others, also
// when a run was killed and could not remove it: their requests never pass through it, and where it cannot be reached it is
// ignored.
func (c *Cluster) webhook(name string, receiver registrationv1.WebhookClientConfig) registrationv1.ValidatingWebhook {
	return registrationv1.ValidatingWebhook{
		Name:                    name + "." + Domain,
		AdmissionReviewVersions: []string{"v1"},
		SideEffects:             new(registrationv1.SideEffectClassNone),
		FailurePolicy:           new(registrationv1.Ignore),
		TimeoutSeconds:          new(int32(webhookTimeout)),
		ClientConfig:            receiver,
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{client.RunLabel: c.session.Run}},
		ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{client.SpecLabel: c.id}},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.Delete},
			Rule:       registrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: c.reviewed()},
		}},
	}
}

// reviewed are the resources that webhooks are for: all, or the one that the run judges. What controllers make of an
// object of that may carry its labels, too, as the EndpointSlices of a Service do.
func (c *Cluster) reviewed() []string {
	if c.session.Resource == nil {
		return []string{"*"}
	}
	collection, err := c.session.Harness.CollectionOf(c.session.Resource)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("find the resource that the run judges: %v", err))
	}
	return []string{collection.Resource.Resource}
}

// WhoAmI is the user that the API server takes the spec's requests for.
func (c *Cluster) WhoAmI(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	user, err := c.session.Harness.WhoAmI(ctx)
	if err != nil {
		c.giveUp(ctx, Response{Request: "ask who the requests come from", Err: err})
	}
	return user
}
