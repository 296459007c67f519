package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/webhookserver"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Option changes a webhook before it is registered.
type Option func(*registrationv1.ValidatingWebhook)

const (
	// webhookReached limits how long the API server may take to call a new webhook.
	webhookReached = 10 * time.Second
	// webhookPolling is the interval for checking that.
	webhookPolling = 20 * time.Millisecond
	// webhookTimeout is how long the API server waits for a response, in seconds: longer than a spec holds a review.
	webhookTimeout = 10
	// unreachable is an address on which nothing listens.
	unreachable = "https://127.0.0.1:1"
)

// OnOperations reviews these operations instead of deletes.
func OnOperations(operations ...registrationv1.OperationType) Option {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.Rules[0].Operations = operations }
}

// OnResources reviews only these resources, of any group: "pods", "pods/eviction". Without it subresources are not reviewed.
func OnResources(resources ...string) Option {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.Rules[0].Resources = resources }
}

// Selecting reviews only objects with a label.
func Selecting(label, value string) Option {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.ObjectSelector.MatchLabels[label] = value }
}

// MatchCondition reviews only requests for which a CEL expression is true.
func MatchCondition(expression string) Option {
	return func(webhook *registrationv1.ValidatingWebhook) {
		webhook.MatchConditions = append(webhook.MatchConditions, registrationv1.MatchCondition{Name: "condition", Expression: expression})
	}
}

// SideEffects sets the side effects class; the default is None.
func SideEffects(class registrationv1.SideEffectClass) Option {
	return func(webhook *registrationv1.ValidatingWebhook) { webhook.SideEffects = &class }
}

// FailurePolicyFail rejects requests that cannot be reviewed.
func FailurePolicyFail(webhook *registrationv1.ValidatingWebhook) {
	webhook.FailurePolicy = new(registrationv1.Fail)
}

// Unreachable makes the webhook unreachable.
func Unreachable(webhook *registrationv1.ValidatingWebhook) {
	webhook.ClientConfig = unreachableConfig()
	webhook.TimeoutSeconds = new(int32(1))
}

// Behind makes the webhook one of a Service, which nothing serves.
func Behind(service *framework.Object) Option {
	return func(webhook *registrationv1.ValidatingWebhook) {
		webhook.ClientConfig = registrationv1.WebhookClientConfig{Service: &registrationv1.ServiceReference{
			Namespace: service.GetNamespace(), Name: service.GetName(),
		}}
		webhook.TimeoutSeconds = new(int32(1))
	}
}

func unreachableConfig() registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{URL: new(unreachable)}
}

// Validating registers a validating webhook and waits until the API server calls it. By default it reviews deletes of the spec's objects,
// and requests that cannot be reviewed are permitted. The spec is skipped when the API server cannot reach the webhook.
func Validating(ctx context.Context, c *framework.Cluster, options ...Option) *Webhook {
	ginkgo.GinkgoHelper()
	return serve(ctx, c, webhookserver.ValidatingConfiguration, options)
}

// Mutating is Validating for a webhook that may respond with a patch.
func Mutating(ctx context.Context, c *framework.Cluster, options ...Option) *Webhook {
	ginkgo.GinkgoHelper()
	return serve(ctx, c, webhookserver.MutatingConfiguration, options)
}

// TryRegister registers a validating webhook that is not served, and returns the API server's response.
func TryRegister(ctx context.Context, c *framework.Cluster, options ...Option) framework.Response {
	ginkgo.GinkgoHelper()
	webhook := webhook(c, "unserved", unreachableConfig())
	for _, option := range options {
		option(&webhook)
	}
	return c.TryCreate(ctx, configuration(webhookserver.ValidatingConfiguration, webhook))
}

// serve starts a receiver, registers a webhook for it, and waits until the API server calls it.
func serve(ctx context.Context, c *framework.Cluster, kind string, options []Option) *Webhook {
	ginkgo.GinkgoHelper()
	webhook := newWebhook(c, users.WhoAmI(ctx, c))
	receiver, err := webhookserver.Open(ctx, c.Session().Harness, c.Session().Config, &admission.Webhook{Handler: admission.HandlerFunc(webhook.handle)})
	if err != nil {
		ginkgo.Skip(err.Error())
	}
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { receiver.Close(ctx) })
	canary := c.Create(ctx, fixtures.ConfigMap("webhook-canary-"+rand.String(6)), framework.WithLabel(client.CanaryLabel, "webhook"))
	registered := register(ctx, c, kind, receiver, options)
	c.ReviewedBy(webhook)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		c.Session().Harness.Delete(ctx, registered, metav1.DeleteOptions{}) // otherwise deleted by teardown
		if lost := webhook.lost(); lost != "" {
			c.Errored(lost)
		}
	})
	patience := c.Session().Slowed(webhookReached)
	err = wait.PollUntilContextTimeout(ctx, webhookPolling, patience, true, func(context.Context) (bool, error) {
		c.Delete(ctx, canary, framework.DryRun) // with its own timeout: an interrupted delete proves nothing
		return len(webhook.Reviews(canary)) > 0, nil
	})
	if wait.Interrupted(err) {
		ginkgo.Skip(fmt.Sprintf("the API server cannot reach a webhook at %s within %s: %s", receiver.Place(), patience, unreachableHint(c)))
	}
	return webhook
}

// unreachableHint returns what to do about a webhook that the API server does not reach.
func unreachableHint(c *framework.Cluster) string {
	if c.Session().WebhookService {
		return "permit connections from the API server to the pod"
	}
	return "set --webhook-host to an address that it can reach, or run in a Job"
}

// register registers a webhook for a receiver. The configuration contains a second webhook, for a canary: when that one is called, the API
// server has loaded both.
func register(ctx context.Context, c *framework.Cluster, kind string, receiver webhookserver.Receiver, options []Option) *framework.Object {
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

// configuration returns a webhook configuration with a random name.
func configuration(kind string, webhooks ...registrationv1.ValidatingWebhook) *framework.Object {
	ginkgo.GinkgoHelper()
	object, err := webhookserver.Configuration(kind, "reviews-"+rand.String(6), webhooks...)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	return object
}

// webhook returns a webhook for the deletes of objects with the spec's label in the run's namespaces.
func webhook(c *framework.Cluster, name string, receiver registrationv1.WebhookClientConfig) registrationv1.ValidatingWebhook {
	selected := webhookserver.Selected{
		Namespaces: c.NamespaceLabels(), Objects: map[string]string{client.SpecLabel: c.Labels()[client.SpecLabel]},
	}
	return webhookserver.Webhook(name, receiver, selected, webhookTimeout, registrationv1.RuleWithOperations{
		Operations: []registrationv1.OperationType{registrationv1.Delete},
		Rule:       registrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: reviewed(c)},
	})
}

// reviewed returns the resources to review: all, or the resource under test. Objects that controllers create for it may carry its labels
// too, such as the EndpointSlices of a Service.
func reviewed(c *framework.Cluster) []string {
	if c.Session().Resource == nil {
		return []string{"*"}
	}
	collection, err := c.Session().Harness.CollectionOf(c.Session().Resource)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("find the resource under test: %v", err))
	}
	return []string{collection.Resource.Resource}
}
