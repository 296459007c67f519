package workloads

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/model"
)

// kubeletNumber is the number of the client that acts as the kubelet. No round has so many others.
const kubeletNumber = 99

// kubelet reports that pods run, and confirms their termination, as the kubelet of their node would.
type kubelet struct {
	with *clients.Actor
	// done are the states of pods that it has answered, by uid and what it did, and addresses counts the addresses of pods.
	done      map[string]bool
	addresses int
}

// act looks at each pod once. It fails where the context ends.
func (k *kubelet) act(ctx context.Context, s *stage) error {
	for _, object := range s.live(func(object *client.Object) bool { return object.GetKind() == "Pod" }) {
		pod := describe.Pod(object)
		ends := pod.DeletionTimestamp != nil && (pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds > 0)
		var err error
		switch {
		case ends:
			err = k.once(ctx, object, string(pod.UID)+" ends", confirmation(object))
		case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending:
			k.addresses++
			err = k.once(ctx, object, string(pod.UID)+" runs "+pod.ResourceVersion, k.startOf(object))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// once sends a request, unless it was answered before.
func (k *kubelet) once(ctx context.Context, pod *client.Object, what string, request clients.Request) error {
	if k.done[what] {
		return nil
	}
	before := len(k.with.Requests)
	err := k.with.Send(ctx, request)
	for _, sent := range k.with.Requests[before:] {
		k.done[what] = !sent.Outcome.Lost()
	}
	return err
}

// confirmation removes a pod whose containers have ended.
func confirmation(pod *client.Object) clients.Request {
	return clients.About(watching.KeyOf(pod), pod, model.Operation{Verb: model.Delete, UID: string(pod.GetUID()), Grace: new(int64(0))})
}

// startOf reports that a pod runs and is ready. The addresses are those of documentation.
func (k *kubelet) startOf(pod *client.Object) clients.Request {
	four, six := fmt.Sprintf("192.0.2.%d", k.addresses%250+1), fmt.Sprintf("2001:db8::%x", k.addresses%65000+1)
	return setStatus(pod, map[string]any{
		"phase": string(corev1.PodRunning), "podIP": four, "podIPs": []any{map[string]any{"ip": four}, map[string]any{"ip": six}},
		"conditions": []any{map[string]any{"type": string(corev1.PodReady), "status": string(corev1.ConditionTrue)}},
	})
}

// setStatus changes the status of a pod as it was seen.
func setStatus(pod *client.Object, status map[string]any) clients.Request {
	body := map[string]any{"metadata": map[string]any{"resourceVersion": pod.GetResourceVersion(), "uid": string(pod.GetUID())}, "status": status}
	return clients.As(watching.KeyOf(pod), pod, model.Operation{Verb: model.UpdateStatus, UID: string(pod.GetUID()), ResourceVersion: pod.GetResourceVersion()},
		client.Request{Method: http.MethodPatch, Subresource: "status", Body: body, ContentType: string(types.MergePatchType)})
}
