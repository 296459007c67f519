package webhookserver

import (
	"fmt"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// The kinds of webhook configurations.
const (
	ValidatingConfiguration = "ValidatingWebhookConfiguration"
	MutatingConfiguration   = "MutatingWebhookConfiguration"
)

// Selected are the labels of what a webhook reviews: of objects, and of their namespaces.
type Selected struct {
	Namespaces, Objects map[string]string
}

// Webhook returns a webhook for objects of the run with a timeout in seconds. It does not affect others, even if the run is killed before it
// can remove it: it does not match their requests, and failures to call it are ignored.
func Webhook(name string, receiver registrationv1.WebhookClientConfig, selected Selected, timeout int32, rule registrationv1.RuleWithOperations) registrationv1.ValidatingWebhook {
	return registrationv1.ValidatingWebhook{
		Name:                    name + "." + client.Domain,
		AdmissionReviewVersions: []string{"v1"},
		SideEffects:             new(registrationv1.SideEffectClassNone),
		FailurePolicy:           new(registrationv1.Ignore),
		TimeoutSeconds:          &timeout,
		ClientConfig:            receiver,
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: selected.Namespaces},
		ObjectSelector:          &metav1.LabelSelector{MatchLabels: selected.Objects},
		Rules:                   []registrationv1.RuleWithOperations{rule},
	}
}

// Configuration returns a webhook configuration of a kind. Mutating webhooks have the fields of validating ones, and one more with a default.
func Configuration(kind, name string, webhooks ...registrationv1.ValidatingWebhook) (*client.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&registrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: registrationv1.SchemeGroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks:   webhooks,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of a webhook: %w", err)
	}
	return &client.Object{Object: content}, nil
}
