package webhooks

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
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/webhookserver"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
)

// receiver is where the API server's reviews arrive. Who starts one says who tests them, so that a test need not know
// whether they come to a port of this machine or, once, to a Service in the cluster.
type receiver interface {
	// ClientConfig is how the API server finds it.
	ClientConfig() registrationv1.WebhookClientConfig
	// Close ends it.
	Close() error
}

// Option changes a webhook before it is registered.
type Option func(*registrationv1.ValidatingWebhook)

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
func OnOperations(operations ...registrationv1.OperationType) Option {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.Rules[0].Operations = operations }
}

// OnResources has only these resources reviewed, of whatever group: "pods", "pods/eviction". Without it subresources are not.
func OnResources(resources ...string) Option {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.Rules[0].Resources = resources }
}

// Selecting has only objects with a label reviewed.
func Selecting(label, value string) Option {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.ObjectSelector.MatchLabels[label] = value }
}

// MatchCondition has only requests reviewed for which a CEL expression is true.
func MatchCondition(expression string) Option {
	return func(webhook *registrationv1.ValidatingWebhook) {
		webhook.MatchConditions = append(webhook.MatchConditions, registrationv1.MatchCondition{Name: "condition", Expression: expression})
	}
}

// SideEffects says what else a webhook does when it is asked; nothing, without it.
func SideEffects(class registrationv1.SideEffectClass) Option {
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

// Validating sets up a validating webhook and waits until the API server asks it. By default deletes of what the spec made
// are reviewed, and what cannot be reviewed is let through. The spec is skipped where the API server does not reach it.
func Validating(ctx context.Context, c *framework.Cluster, options ...Option) *Webhook {
	ginkgo.GinkgoHelper()
	return serve(ctx, c, validatingConfiguration, options)
}

// Mutating is Validating, for a webhook that may answer with a patch.
func Mutating(ctx context.Context, c *framework.Cluster, options ...Option) *Webhook {
	ginkgo.GinkgoHelper()
	return serve(ctx, c, mutatingConfiguration, options)
}

// TryRegister registers a validating webhook that nobody serves, and returns what the API server says to that.
func TryRegister(ctx context.Context, c *framework.Cluster, options ...Option) framework.Response {
	ginkgo.GinkgoHelper()
	webhook := webhook(c, "unserved", unserved())
	for _, option := range options {
		option(&webhook)
	}
	return c.TryCreate(ctx, configuration(validatingConfiguration, webhook))
}

// serve begins to receive reviews, registers a webhook for them, and waits until the API server asks it.
func serve(ctx context.Context, c *framework.Cluster, kind string, options []Option) *Webhook {
	ginkgo.GinkgoHelper()
	webhook := &Webhook{self: users.WhoAmI(ctx, c), decision: map[string]decision{}}
	receiver := receive(c, webhook)
	canary := c.Create(ctx, fixtures.ConfigMap("webhook-canary"), framework.Named(c.FreeName("webhook-canary-"+rand.String(6))), framework.WithLabel(client.CanaryLabel, "webhook"))
	registered := register(ctx, c, kind, receiver, options)
	c.ReviewedBy(webhook)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		c.Session().Harness.Delete(ctx, registered, metav1.DeleteOptions{}) // else at the run's end
	})
	patience := c.Session().Slowed(webhookReached)
	err := wait.PollUntilContextTimeout(ctx, webhookPolling, patience, true, func(context.Context) (bool, error) {
		c.Delete(ctx, canary, framework.DryRun) // in its own time: one that is cut off says nothing
		return len(webhook.Reviews(canary)) > 0, nil
	})
	if wait.Interrupted(err) {
		ginkgo.Skip(fmt.Sprintf("the API server does not reach a webhook at %s within %s: name an address that it can reach (--webhook-host)",
			*receiver.ClientConfig().URL, patience))
	}
	return webhook
}

// receive begins to receive reviews on this machine, for a webhook to test.
func receive(c *framework.Cluster, webhook *Webhook) receiver {
	ginkgo.GinkgoHelper()
	server, err := webhookserver.Start(c.Session().WebhookHost, admission.HandlerFunc(webhook.handle))
	if err != nil {
		ginkgo.Skip(fmt.Sprintf("%v: name an address of this machine (--webhook-host)", err))
	}
	ginkgo.DeferCleanup(server.Close)
	return server
}

// register tells the API server to ask a receiver. The configuration has a second webhook, for a canary: when that one is asked
// the API server knows of both.
func register(ctx context.Context, c *framework.Cluster, kind string, receiver receiver, options []Option) *framework.Object {
	ginkgo.GinkgoHelper()
	reviewed, probed := webhook(c, "reviewed", receiver.ClientConfig()), webhook(c, "probed", receiver.ClientConfig())
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
func configuration(kind string, webhooks ...registrationv1.ValidatingWebhook) *framework.Object {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&registrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: registrationv1.SchemeGroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: "reviews-" + rand.String(6)},
		Webhooks:   webhooks,
	})
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode the webhook's configuration: %v", err))
	}
	return &framework.Object{Object: content}
}

// webhook is a webhook for the deletes of what carries the spec's label in the run's namespaces. It is no use to others, also
// when a run was killed and could not remove it: their requests never pass through it, and where it cannot be reached it is
// ignored.
func webhook(c *framework.Cluster, name string, receiver registrationv1.WebhookClientConfig) registrationv1.ValidatingWebhook {
	return registrationv1.ValidatingWebhook{
		Name:                    name + "." + framework.Domain,
		AdmissionReviewVersions: []string{"v1"},
		SideEffects:             new(registrationv1.SideEffectClassNone),
		FailurePolicy:           new(registrationv1.Ignore),
		TimeoutSeconds:          new(int32(webhookTimeout)),
		ClientConfig:            receiver,
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{client.RunLabel: c.Session().Run}},
		ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{client.SpecLabel: c.Labels()[client.SpecLabel]}},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.Delete},
			Rule:       registrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: reviewed(c)},
		}},
	}
}

// reviewed are the resources that webhooks are for: all, or the one that the run tests. What controllers make of an
// object of that may carry its labels, too, as the EndpointSlices of a Service do.
func reviewed(c *framework.Cluster) []string {
	if c.Session().Resource == nil {
		return []string{"*"}
	}
	collection, err := c.Session().Harness.CollectionOf(c.Session().Resource)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("find the resource that the run tests: %v", err))
	}
	return []string{collection.Resource.Resource}
}
