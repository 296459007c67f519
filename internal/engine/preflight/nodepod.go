package preflight

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// A Ready node may not run the pods of the specs: it has another operating system, a taint or no room, or it cannot pull the images. So
// setup runs such a pod.

const (
	// podStarts limits how long a pod may take to start, because its image may have to be pulled.
	podStarts = 4 * time.Minute
	// podBlocked limits how long a pod may be unschedulable or without an image. Within this time a node may get room, and a failed pull is
	// repeated.
	podBlocked = 15 * time.Second
	// podPolling is the interval for reading the pod.
	podPolling = 100 * time.Millisecond
)

// probePod checks whether a pod of the run starts, on a certain node if one is named. It does nothing for a cluster whose creator guarantees
// that, for a run without a behavior that requires the feature, or when the pod cannot be created, which other probes report.
func probePod(ctx context.Context, t Target, feature v1alpha1.Feature, node string) error {
	if slices.Contains(t.Supported, v1alpha1.Node) || !t.requires(feature) {
		return nil
	}
	pod := fixtures.NodePod(t.Run+"-preflight-"+rand.String(6), fixtures.Container{Name: "main", OnTerm: "exit 0"})
	t.place(pod)
	if node != "" {
		term := map[string]any{"matchFields": []any{map[string]any{
			"key": metav1.ObjectNameField, "operator": string(corev1.NodeSelectorOpIn), "values": []any{node},
		}}}
		// This cannot fail, because the spec is an object.
		_ = unstructured.SetNestedSlice(pod.Object, []any{term}, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	}
	if created := t.Client.Create(ctx, pod); created.Err != nil {
		return nil
	}
	defer t.Client.Remove(context.WithoutCancel(ctx), pod, client.Removal{})
	if reason := awaitStart(ctx, t, pod); reason != "" {
		return skipReason{nodesCheck, "no node runs a pod of the run: " + reason, "--pod-overlay with tolerations or a nodeSelector, --image-registry"}
	}
	return ctx.Err()
}

// awaitStart waits until a pod runs, and returns why it does not; empty when it runs, or when it was deleted meanwhile.
func awaitStart(ctx context.Context, t Target, pod *client.Object) string {
	reason, since := "", time.Now()
	err := wait.PollUntilContextTimeout(ctx, podPolling, t.Slowed(podStarts), true, func(context.Context) (bool, error) {
		read := t.Client.Get(ctx, pod)
		if read.Err != nil {
			return apierrors.IsNotFound(read.Err), nil //nolint:nilerr // after another error a later read decides
		}
		state := describe.Pod(read.Object)
		now, final := blockedBy(state)
		if now == "" {
			since = time.Now()
		}
		reason = now
		return state.Status.Phase == corev1.PodRunning || final || time.Since(since) > t.Slowed(podBlocked), nil
	})
	if wait.Interrupted(err) && reason == "" {
		return fmt.Sprintf("it did not start within %s", t.Slowed(podStarts))
	}
	return reason
}

// imageless are the reasons why a container does not get its image until something outside the pod changes.
var imageless = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable"}

// blockedBy returns what keeps a pod from starting, and whether that is final; empty when nothing does.
func blockedBy(pod corev1.Pod) (reason string, final bool) {
	if pod.Status.Phase == corev1.PodFailed {
		return fmt.Sprintf("%s: %s", pod.Status.Reason, pod.Status.Message), true
	}
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil && slices.Contains(imageless, waiting.Reason) {
			return fmt.Sprintf("%s: %s", waiting.Reason, waiting.Message), false
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message, false
		}
	}
	if pod.Spec.NodeName == "" {
		return "no scheduler handles it", false
	}
	return "", false
}
