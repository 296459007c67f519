package framework

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

const (
	// Late is how much later than its time something may happen on a node that is busy: several times the 2 s to 6 s that
	// were seen with twice as many busy loops as processors, and too little to hide a node that gives every container 30 s.
	Late = 20 * time.Second
	// startup is how long a pod may take to run, or longer if the run has more patience: its images may have to be pulled.
	startup = 4 * time.Minute
	// shutdown is how long a pod may take to end, or longer if the run has more patience. The longest grace that a spec
	// waits for is 28 s.
	shutdown = 2 * time.Minute
)

// Run creates a pod and waits until a node runs it and all its containers say that they are ready.
func (c *Cluster) Run(ctx context.Context, manifest *Object, options ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, manifest, options...)
	c.AwaitReady(ctx, pod)
	return c.Get(ctx, pod)
}

// Launch creates a pod and waits until a node has given it an address. Its containers need not be ready.
func (c *Cluster) Launch(ctx context.Context, manifest *Object, options ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, manifest, options...)
	c.awaitStart(ctx, pod, haveAddress())
	return c.Get(ctx, pod)
}

// AwaitReady waits until a node runs a pod and all its containers say that they are ready.
func (c *Cluster) AwaitReady(ctx context.Context, pod *Object) {
	ginkgo.GinkgoHelper()
	c.awaitStart(ctx, pod, haveCondition(string(corev1.PodReady)))
}

// awaitStart waits until a pod has got as far as is asked for.
func (c *Cluster) awaitStart(ctx context.Context, pod *Object, far types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, c.History(pod)).WithTimeout(max(startup, c.session.WaitTimeout)).Should(
		Show(Seen(pod, far)), "a node runs the pod")
}

// AwaitEnd waits until a pod is gone that is being deleted, and says how its containers ended, by name.
func (c *Cluster) AwaitEnd(ctx context.Context, pod *Object) map[string]End {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, c.History(pod)).WithTimeout(max(shutdown, c.session.WaitTimeout)).Should(
		Show(Terminating(pod), Deleted(pod)))
	return c.ends(pod)
}

// podOf reads an object as a pod. What does not fit reads as an empty one.
func podOf(object *Object) corev1.Pod {
	pod := corev1.Pod{}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod)
	return pod
}

// containersOf are the states of a pod's containers, sidecars included.
func containersOf(object *Object) []corev1.ContainerStatus {
	pod := podOf(object)
	return append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...)
}

// End is how a container ended, as the node says. Times are whole seconds of the node's clock.
type End struct {
	// Terminated is when SIGTERM came; zero when the container noted none.
	Terminated time.Time
	// Finished is when the container was gone.
	Finished time.Time
	ExitCode int32
	// Message is the rest of what the container noted.
	Message string
}

// ends are how the containers of a pod ended, by name, as the last event before the pod was gone shows them. It ends
// the spec when a container is not shown to have ended.
func (c *Cluster) ends(pod *Object) map[string]End {
	ginkgo.GinkgoHelper()
	events, err := c.History(pod).Events()
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	if len(events) == 0 {
		ginkgo.Fail(fmt.Sprintf("nothing was seen of %s", title(pod)))
	}
	last := events[len(events)-1].Object
	if !allTerminated(last) {
		ginkgo.Fail(fmt.Sprintf("expected the last state of %s to show every container terminated:\n%s", title(pod), strings.Join(containerStates(last), "\n")))
	}
	ends := map[string]End{}
	for _, container := range containersOf(last) {
		ends[container.Name] = endOf(container.State.Terminated)
	}
	return ends
}

// endOf reads the state, and the note that the container left: the second of SIGTERM first, the message behind it.
func endOf(state *corev1.ContainerStateTerminated) End {
	end := End{Finished: state.FinishedAt.Time, ExitCode: state.ExitCode}
	note, message, _ := strings.Cut(strings.TrimSpace(state.Message), "\n")
	if seconds, err := strconv.ParseInt(note, 10, 64); err == nil {
		end.Terminated = time.Unix(seconds, 0)
	}
	end.Message = message
	return end
}

func allTerminated(pod *Object) bool {
	containers := containersOf(pod)
	for _, container := range containers {
		if container.State.Terminated == nil {
			return false
		}
	}
	return len(containers) > 0
}

// HaveEnded matches a pod of which every container is shown to have terminated.
func HaveEnded() types.GomegaMatcher {
	return property{"have only terminated containers", allTerminated}
}

// HavePhase matches a pod in one of these phases.
func HavePhase(phases ...corev1.PodPhase) types.GomegaMatcher {
	return property{fmt.Sprintf("have a phase of %q", phases), func(object *Object) bool {
		return slices.Contains(phases, podOf(object).Status.Phase)
	}}
}

// haveStarted matches a pod that its kubelet has seen.
func haveStarted() types.GomegaMatcher {
	return property{"have a startTime", func(object *Object) bool { return podOf(object).Status.StartTime != nil }}
}

func haveAddress() types.GomegaMatcher {
	return property{"have an address", func(object *Object) bool { return AddressOf(object) != "" }}
}

// containerStates tells each container of a pod in a few words; nil for other objects.
func containerStates(object *Object) []string {
	if object.GetKind() != "Pod" {
		return nil
	}
	var states []string
	for _, container := range containersOf(object) {
		state := "waiting"
		switch {
		case container.State.Terminated != nil:
			state = fmt.Sprintf("terminated (exit %d)", container.State.Terminated.ExitCode)
		case container.State.Running != nil:
			state = "running"
		}
		states = append(states, container.Name+": "+state)
	}
	return states
}

// fromMirror makes a pod, or what has a pod template, take its images from a mirror of their registry.
func fromMirror(object *Object, mirror string) {
	if mirror == "" {
		return
	}
	spec, _ := object.Object["spec"].(map[string]any)
	if template, has := spec["template"].(map[string]any); has {
		spec, _ = template["spec"].(map[string]any)
	}
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := spec[list].([]any)
		for _, entry := range containers {
			container, _ := entry.(map[string]any)
			if image, has := container["image"].(string); has {
				container["image"] = fixtures.WithRegistry(image, mirror)
			}
		}
	}
}

// AddressOf is the address of a pod that runs.
func AddressOf(pod *Object) string { return podOf(pod).Status.PodIP }

// NodeOf is the name of the node that runs a pod.
func NodeOf(pod *Object) string { return podOf(pod).Spec.NodeName }

// EndpointCondition is what an endpoint says of itself.
type EndpointCondition struct {
	name string
	is   func(discoveryv1.EndpointConditions) bool
}

var (
	// Ready endpoints are ready and not terminating.
	Ready = EndpointCondition{"ready", func(c discoveryv1.EndpointConditions) bool {
		return isTrue(c.Ready) && !isTrue(c.Terminating)
	}}
	// NotReadyAndTerminating endpoints are of pods that are being deleted.
	NotReadyAndTerminating = EndpointCondition{"terminating and not ready", func(c discoveryv1.EndpointConditions) bool {
		return !isTrue(c.Ready) && isTrue(c.Terminating)
	}}
)

func isTrue(value *bool) bool { return value != nil && *value }

// HaveEndpoint matches an EndpointSlice in which the endpoint of a pod is in some condition.
func HaveEndpoint(pod *Object, condition EndpointCondition) types.GomegaMatcher {
	return property{fmt.Sprintf("have an endpoint of %s that is %s", title(pod), condition.name), func(object *Object) bool {
		for _, endpoint := range endpointsOf(object) {
			if endpoint.TargetRef != nil && endpoint.TargetRef.UID == pod.GetUID() && condition.is(endpoint.Conditions) {
				return true
			}
		}
		return false
	}}
}

// endpointsOf are the endpoints of an EndpointSlice; nil for other objects.
func endpointsOf(object *Object) []discoveryv1.Endpoint {
	slice := discoveryv1.EndpointSlice{}
	if object.GetKind() != "EndpointSlice" || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &slice) != nil {
		return nil
	}
	return slice.Endpoints
}

// endpointStates tells each endpoint of an EndpointSlice in a few words; nil for other objects.
func endpointStates(object *Object) []string {
	var states []string
	for _, endpoint := range endpointsOf(object) {
		name := "endpoint"
		if endpoint.TargetRef != nil {
			name += fmt.Sprintf(" %s %q", endpoint.TargetRef.Kind, endpoint.TargetRef.Name)
		}
		states = append(states, fmt.Sprintf("%s: ready %t, terminating %t", name,
			isTrue(endpoint.Conditions.Ready), isTrue(endpoint.Conditions.Terminating)))
	}
	return states
}
