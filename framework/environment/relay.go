package environment

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/relay"
)

const (
	// relayTime limits how long the pod of a relay may take to be ready, including the pull of its image.
	relayTime = 3 * time.Minute
	// relayPolling is the interval for checking that.
	relayPolling = 100 * time.Millisecond
)

// startRelay starts the pod that receives webhooks for this machine, and waits until it is ready.
func (e *Environment) startRelay(ctx context.Context) error {
	image, namespace := e.options.WebhookImage, e.namespaces[0].GetName()
	if image == "" {
		return nil
	}
	proxy := authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "proxy", Namespace: namespace}
	if allowed, err := e.client.Allowed(ctx, proxy); err != nil || !allowed {
		return fmt.Errorf("receive webhooks in the cluster: %w", cmp.Or(err, error(denied(client.Permission(proxy)))))
	}
	token := rand.Text()
	pod := fixtures.RelayPod("webhook-relay", image, relay.TokenVariable, token)
	pod.SetNamespace(namespace)
	pod.SetLabels(labels.Merge(pod.GetLabels(), e.labels(1)))
	if response := e.client.Create(ctx, pod); response.Err != nil {
		return fmt.Errorf("create the pod that receives webhooks: %w", response.Err)
	}
	address, err := e.awaitRelay(ctx, pod)
	if err != nil {
		return fmt.Errorf("the pod that receives webhooks does not run image %s: %w", image, err)
	}
	e.options.WebhookHost, e.options.WebhookService = address, true
	e.options.WebhookPod = &relay.Pod{Namespace: namespace, Name: pod.GetName(), Token: token}
	return nil
}

// awaitRelay waits until a pod is ready, and returns its IP address.
func (e *Environment) awaitRelay(ctx context.Context, object *client.Object) (address string, err error) {
	var state string
	patience := e.slowed(relayTime)
	err = wait.PollUntilContextTimeout(ctx, relayPolling, patience, true, func(context.Context) (bool, error) {
		response := e.client.Get(ctx, object)
		pod := corev1.Pod{}
		if response.Err != nil {
			return false, response.Err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(response.Object.Object, &pod); err != nil {
			return false, err
		}
		address = pod.Status.PodIP
		var final bool
		state, final = relayState(pod)
		if final {
			return false, errors.New(state)
		}
		return state == "", nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = fmt.Errorf("it is not ready after %s: %s", patience, state)
	}
	return address, err
}

// hopeless are the reasons for which a container waits that do not go away by themselves.
var hopeless = []string{"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}

// relayState returns why a pod is not ready, and whether that is final; empty when it is ready.
func relayState(pod corev1.Pod) (reason string, final bool) {
	for _, container := range pod.Status.ContainerStatuses {
		switch state := container.State; {
		case state.Terminated != nil:
			return fmt.Sprintf("it ended with code %d; it must be an image of this runner, as make image writes it", state.Terminated.ExitCode), true
		case state.Waiting != nil && slices.Contains(hopeless, state.Waiting.Reason):
			return state.Waiting.Reason + ": " + state.Waiting.Message, true
		case state.Waiting != nil:
			return state.Waiting.Reason, false
		}
	}
	for _, condition := range pod.Status.Conditions {
		switch ready := condition.Status == corev1.ConditionTrue; {
		case condition.Type == corev1.PodReady && ready:
			return "", false
		case condition.Type == corev1.PodScheduled && !ready:
			return condition.Message, false
		}
	}
	return "it is " + string(pod.Status.Phase), false
}
