package clients

import (
	"net/http"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
)

// SetStatus changes the status of a pod as it was seen, as its kubelet would.
func SetStatus(pod *client.Object, status map[string]any) Request {
	operation := model.Operation{Verb: model.UpdateStatus, UID: string(pod.GetUID()), ResourceVersion: pod.GetResourceVersion()}
	body := map[string]any{"metadata": map[string]any{"resourceVersion": operation.ResourceVersion, "uid": operation.UID}, "status": status}
	return As(watching.KeyOf(pod), pod, operation,
		client.Request{Method: http.MethodPatch, Subresource: "status", Body: body, ContentType: string(types.MergePatchType)})
}

// Evict deletes a pod unless a budget forbids that.
func Evict(pod *client.Object) Request {
	body := policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Name: pod.GetName(), Namespace: pod.GetNamespace()},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.GetUID()))},
	}
	return As(watching.KeyOf(pod), pod, model.Operation{Verb: model.Evict, UID: string(pod.GetUID())},
		client.Request{Method: http.MethodPost, Subresource: "eviction", Body: body})
}
