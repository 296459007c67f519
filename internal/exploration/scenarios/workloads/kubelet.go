package workloads

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/model"
)

// kubeletNumber is the number of the client that acts as the kubelet. No round has so many others.
const kubeletNumber = 99

// leftOver is how long a pod whose grace period is 0 may exist. The API server removes it with a second write, which it leaves out when the client is gone
// by then, and the kubelet removes it.
const leftOver = 10 * time.Second

// kubelet reports that pods run, and confirms their termination, as the kubelet of their node would.
type kubelet struct {
	with *clients.Actor
	// done are the states of pods that it has answered, and addresses counts the addresses of pods.
	done      map[string]bool
	addresses int
}

// act looks at each pod once. It fails where the context ends.
func (k *kubelet) act(ctx context.Context, s *stage) error {
	for _, object := range s.live(func(object *client.Object) bool { return object.GetKind() == "Pod" }) {
		state := stateOf(describe.Pod(object), time.Now())
		if state == "" {
			continue
		}
		if err := k.once(ctx, object, state); err != nil {
			return err
		}
	}
	return nil
}

// The states of pods that the kubelet answers.
const (
	terminates = "terminates"
	isLeftOver = "is left over"
	isPending  = "is pending"
	isNotReady = "is not ready"
)

// stateOf is the state of a pod that the kubelet answers, or empty where there is none.
func stateOf(pod corev1.Pod, now time.Time) string {
	isDeleted := pod.DeletionTimestamp != nil
	switch {
	case isDeleted && (pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds > 0):
		return terminates
	case isDeleted && now.Sub(pod.DeletionTimestamp.Time) > leftOver:
		return isLeftOver
	case isDeleted:
		return ""
	case pod.Status.Phase == corev1.PodPending:
		return isPending
	case pod.Status.Phase == corev1.PodRunning && !hasReadiness(pod):
		return isNotReady
	}
	return ""
}

// answer is the request about a pod in some state.
func (k *kubelet) answer(pod *client.Object, state string) clients.Request {
	switch state {
	case isPending:
		k.addresses++
		return clients.SetStatus(pod, withAddress(k.addresses))
	case isNotReady:
		return clients.SetStatus(pod, ready(corev1.ConditionTrue))
	}
	return confirmation(pod)
}

// hasReadiness reports whether the status of a pod shows whether it is ready.
func hasReadiness(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool { return condition.Type == corev1.PodReady })
}

// once answers a pod in some state, unless that was done before: once for each deletion, and for each version of a status.
func (k *kubelet) once(ctx context.Context, pod *client.Object, state string) error {
	key := string(pod.GetUID()) + " " + state
	if state == isPending || state == isNotReady {
		key += " " + pod.GetResourceVersion()
	}
	if k.done[key] {
		return nil
	}
	before := len(k.with.Requests)
	err := k.with.Send(ctx, k.answer(pod, state))
	for _, sent := range k.with.Requests[before:] {
		k.done[key] = !sent.Outcome.Lost()
	}
	return err
}

// confirmation removes a pod whose containers have ended.
func confirmation(pod *client.Object) clients.Request {
	return clients.About(watching.KeyOf(pod), pod, model.Operation{Verb: model.Delete, UID: string(pod.GetUID()), Grace: new(int64(0))})
}

// withAddress is the status of a pod that runs and is not yet ready. The addresses are those of documentation.
func withAddress(number int) map[string]any {
	four, six := fmt.Sprintf("192.0.2.%d", number%250+1), fmt.Sprintf("2001:db8::%x", number%65000+1)
	return map[string]any{"phase": string(corev1.PodRunning), "podIP": four, "podIPs": []any{map[string]any{"ip": four}, map[string]any{"ip": six}}}
}

// ready is the status of a pod that becomes ready, or no longer is.
func ready(status corev1.ConditionStatus) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": string(corev1.PodReady), "status": string(status)}}}
}

// ended is the status of a pod whose containers have ended.
func ended(phase corev1.PodPhase) map[string]any {
	status := ready(corev1.ConditionFalse)
	status["phase"] = string(phase)
	return status
}
