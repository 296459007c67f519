package framework

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/onsi/ginkgo/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// Review is an admission review of a delete that waits for its answer.
type Review struct {
	// User is who asked for the delete.
	User string
	// Options are what the delete carried.
	Options metav1.DeleteOptions
}

// Interception is a validating webhook of the spec's own, for the deletes of one object. It holds every review but those of
// the spec's own requests.
type Interception struct {
	held     string
	self     string
	patience time.Duration
	reviews  chan Review
	seen     chan string
	letGo    chan struct{}
}

const (
	// hookReached bounds how long the API server may take to learn of a webhook and to reach it.
	hookReached = 10 * time.Second
	// hookTimeout is how long the API server waits for an answer, in seconds; the longest that Kubernetes allows.
	hookTimeout = 30
)

// InterceptDeletes sets up a webhook that holds each delete of an object by anybody else, before it happens. The spec
// is skipped where the API server does not reach it.
func (c *Cluster) InterceptDeletes(ctx context.Context, object *Object) *Interception {
	ginkgo.GinkgoHelper()
	hook := &Interception{
		held:     object.GetName(),
		self:     c.whoAmI(ctx),
		patience: c.session.WaitTimeout,
		reviews:  make(chan Review, 100),
		seen:     make(chan string, 100),
		letGo:    make(chan struct{}),
	}
	address, bundle, err := hook.serve(c.session.WebhookHost)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	c.register(ctx, address, bundle)
	c.awaitHook(ctx, hook, address)
	return hook
}

// Next waits for the next review that the hook holds.
func (h *Interception) Next(ctx context.Context) Review {
	ginkgo.GinkgoHelper()
	select {
	case review := <-h.reviews:
		return review
	case <-time.After(h.patience):
		ginkgo.Fail(fmt.Sprintf("expected a review of the deletion of %q; none came within %s", h.held, h.patience))
	case <-ctx.Done():
		ginkgo.Fail(fmt.Sprintf("expected a review of the deletion of %q: %v", h.held, context.Cause(ctx)))
	}
	return Review{}
}

// LetGo allows what is held and all that is still to come.
func (h *Interception) LetGo() { close(h.letGo) }

// serve answers reviews on a free port until the spec ends.
func (h *Interception) serve(host string) (address string, bundle []byte, err error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	if err != nil {
		return "", nil, fmt.Errorf("make a certificate for a webhook on %s: %w", host, err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return "", nil, fmt.Errorf("make a certificate for a webhook on %s: %w", host, err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(host, "0"), &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		return "", nil, fmt.Errorf("listen for a webhook on %s: %w", host, err)
	}
	server := &http.Server{Handler: http.HandlerFunc(h.answer), ReadHeaderTimeout: hookTimeout * time.Second}
	go func() { _ = server.Serve(listener) }()
	ginkgo.DeferCleanup(server.Close)
	return "https://" + listener.Addr().String(), certificate, nil
}

// answer allows what it is asked, when the time has come.
func (h *Interception) answer(writer http.ResponseWriter, asked *http.Request) {
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(asked.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(writer, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	request := review.Request
	h.seen <- request.Name
	if request.Name == h.held && request.UserInfo.Username != h.self {
		options := metav1.DeleteOptions{}
		if err := json.Unmarshal(request.Options.Raw, &options); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		h.reviews <- Review{User: request.UserInfo.Username, Options: options}
		select {
		case <-h.letGo:
		case <-asked.Context().Done():
		}
	}
	review.Response = &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	review.Request = nil
	_ = json.NewEncoder(writer).Encode(review)
}

// register tells the API server to have deletes of this spec's objects reviewed at an address.
func (c *Cluster) register(ctx context.Context, address string, bundle []byte) {
	ginkgo.GinkgoHelper()
	configuration := admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{Name: c.session.Run},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "deletes." + Domain,
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:           new(admissionregistrationv1.Ignore),
			TimeoutSeconds:          new(int32(hookTimeout)),
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &address, CABundle: bundle},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{RunLabel: c.session.Run}},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{SpecLabel: c.spec}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
			}},
		}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&configuration)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode the webhook's configuration: %v", err))
	}
	c.Create(ctx, &Object{Object: content})
}

// awaitHook asks for dry-run deletes of a canary until the webhook is asked about one.
func (c *Cluster) awaitHook(ctx context.Context, hook *Interception, address string) {
	ginkgo.GinkgoHelper()
	canary := c.Create(ctx, fixtures.ConfigMap("hook-canary"))
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, hookReached, true, func(ctx context.Context) (bool, error) {
		c.Delete(ctx, canary, DryRun)
		select {
		case <-hook.seen:
			return true, nil
		default:
			return false, nil
		}
	})
	if wait.Interrupted(err) {
		ginkgo.Skip(fmt.Sprintf("the API server does not reach a webhook on %s (within %s)", address, hookReached))
	}
}

// whoAmI is the user that the API server takes the spec's requests for.
func (c *Cluster) whoAmI(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	review := authenticationv1.SelfSubjectReview{}
	answer := c.must(c.asked(ctx, c.session.client.ask(ctx, request{
		verb: http.MethodPost,
		path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		body: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
	})))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object.Object, &review); err != nil {
		ginkgo.Fail(errors.Join(errors.New("read who the credentials belong to"), err).Error())
	}
	return review.Status.UserInfo.Username
}
