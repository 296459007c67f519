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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

const (
	// NodeTolerance is how much later than its time something may happen on a node that is busy: several times the 2 s to 6 s that
	// were seen with twice as many busy loops as processors, and too little to hide a node that gives every container 30 s.
	NodeTolerance = 20 * time.Second
	// startup is how long a pod may take to run, or longer if the run waits longer: its images may have to be pulled.
	startup = 4 * time.Minute
	// shutdown is how long a pod may take to end, or longer if the run waits longer. The longest grace that a spec
	// waits for is 28 s.
	shutdown = 2 * time.Minute
)

// RunPod creates a pod and waits until a node runs it and all its containers say that they are ready.
func (c *Cluster) RunPod(ctx context.Context, manifest *Object, options ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, manifest, options...)
	c.AwaitReady(ctx, pod)
	return c.Get(ctx, pod)
}

// StartPod creates a pod and waits until a node has given it an address. Its containers need not be ready.
func (c *Cluster) StartPod(ctx context.Context, manifest *Object, options ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, manifest, options...)
	c.AwaitStart(ctx, pod, haveAddress())
	return c.Get(ctx, pod)
}

// AwaitReady waits until a node runs a pod and all its containers say that they are ready.
func (c *Cluster) AwaitReady(ctx context.Context, pod *Object) {
	ginkgo.GinkgoHelper()
	c.AwaitStart(ctx, pod, HaveCondition(string(corev1.PodReady)))
}

// AwaitStart waits until a node has got as far with a pod as is asked for.
func (c *Cluster) AwaitStart(ctx context.Context, pod *Object, far types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, c.History(pod)).WithTimeout(c.AtLeast(startup)).Should(
		HaveObserved(Matching(pod, far)), "a node runs the pod")
}

// AwaitTermination waits until a pod is gone that is being deleted, and says how its containers ended, by name.
func (c *Cluster) AwaitTermination(ctx context.Context, pod *Object) map[string]Termination {
	ginkgo.GinkgoHelper()
	c.AwaitDeletion(ctx, pod)
	return c.terminations(pod)
}

// AwaitDeletion waits until a pod is gone that is being deleted, and was seen to be all this before.
func (c *Cluster) AwaitDeletion(ctx context.Context, pod *Object, before ...types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	expected := []EventMatcher{Terminating(pod)}
	if len(before) > 0 {
		expected = append(expected, Matching(pod, gomega.And(before...)))
	}
	gomega.Eventually(ctx, c.History(pod)).WithTimeout(c.AtLeast(shutdown)).Should(
		HaveObserved(append(expected, Deleted(pod))...))
}

// Debug adds an ephemeral container to a pod.
func (c *Cluster) Debug(ctx context.Context, pod *Object, container map[string]any) {
	ginkgo.GinkgoHelper()
	c.complete(container)
	body := map[string]any{"spec": map[string]any{"ephemeralContainers": []any{container}}}
	c.Patch(ctx, pod, apitypes.StrategicMergePatchType, body, "ephemeralcontainers")
}

// Termination is how a container ended, as the node says. Times are whole seconds of the node's clock.
type Termination struct {
	// SignaledAt is when SIGTERM was received; zero when the container noted none.
	SignaledAt time.Time
	// FinishedAt is when the container was gone.
	FinishedAt time.Time
	ExitCode   int32
	// Reason is the node's word for it.
	Reason string
	// Restarts is how often the container was started anew.
	Restarts int32
	// Message is the rest of what the container noted.
	Message string
}

// terminations are how the containers of a pod ended, by name, as the last event before the pod was gone shows them. It ends
// the spec when a container is not shown to have ended.
func (c *Cluster) terminations(pod *Object) map[string]Termination {
	ginkgo.GinkgoHelper()
	events, err := c.History(pod).Events()
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	if len(events) == 0 {
		ginkgo.Fail(fmt.Sprintf("nothing was seen of %s", client.Title(pod)))
	}
	last := events[len(events)-1].Object
	if !allTerminated(last) {
		ginkgo.Fail(fmt.Sprintf("expected the last state of %s to show every container terminated:\n%s", client.Title(pod), strings.Join(describe.ContainerStates(last), "\n")))
	}
	terminations := map[string]Termination{}
	for _, container := range describe.Containers(last) {
		termination := terminationOf(container.State.Terminated)
		termination.Restarts = container.RestartCount
		terminations[container.Name] = termination
	}
	return terminations
}

// terminationOf reads the state, and the note that the container left: the second of SIGTERM first, the message behind it.
func terminationOf(state *corev1.ContainerStateTerminated) Termination {
	termination := Termination{FinishedAt: state.FinishedAt.Time, ExitCode: state.ExitCode, Reason: state.Reason}
	note, message, _ := strings.Cut(strings.TrimSpace(state.Message), "\n")
	if seconds, err := strconv.ParseInt(note, 10, 64); err == nil {
		termination.SignaledAt = time.Unix(seconds, 0)
	}
	termination.Message = message
	return termination
}

func allTerminated(pod *Object) bool {
	containers := describe.Containers(pod)
	for _, container := range containers {
		if container.State.Terminated == nil {
			return false
		}
	}
	return len(containers) > 0
}

// HaveTerminatedContainers matches a pod of which every container is shown to have terminated.
func HaveTerminatedContainers() types.GomegaMatcher {
	return property("have only terminated containers", allTerminated)
}

// HaveRunning matches a pod of which a container is shown to run.
func HaveRunning(name string) types.GomegaMatcher {
	return property("have "+name+" running", func(object *Object) bool {
		return slices.ContainsFunc(describe.Containers(object), func(container corev1.ContainerStatus) bool {
			return container.Name == name && container.State.Running != nil
		})
	})
}

// HaveStarted matches a pod of which a container was ever started: it runs, or has an ID or a start time. A container that
// ended between two updates of the status was never shown to run, and has an ID all the same.
func HaveStarted(name string) types.GomegaMatcher {
	return property("have started "+name, func(object *Object) bool {
		return slices.ContainsFunc(describe.Containers(object), func(container corev1.ContainerStatus) bool {
			state := container.State
			return container.Name == name && (state.Running != nil || container.ContainerID != "" ||
				state.Terminated != nil && (state.Terminated.ContainerID != "" || !state.Terminated.StartedAt.IsZero()))
		})
	})
}

// HavePhase matches a pod, or a namespace, in one of these phases.
func HavePhase[Phase ~string](phases ...Phase) types.GomegaMatcher {
	return property(fmt.Sprintf("have a phase of %q", phases), func(object *Object) bool {
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		return slices.Contains(phases, Phase(phase))
	})
}

// haveStarted matches a pod that its kubelet has seen.
func haveStarted() types.GomegaMatcher {
	return property("have a startTime", func(object *Object) bool { return describe.Pod(object).Status.StartTime != nil })
}

func haveAddress() types.GomegaMatcher {
	return property("have an address", func(object *Object) bool { return AddressOf(object) != "" })
}

// AddressOf is the address of a pod that runs.
func AddressOf(pod *Object) string { return describe.Pod(pod).Status.PodIP }

// NodeOf is the name of the node that runs a pod.
func NodeOf(pod *Object) string { return describe.Pod(pod).Spec.NodeName }

// ContainersOf are the runtime's ids of the containers of a pod that runs.
func ContainersOf(pod *Object) []string {
	var ids []string
	for _, container := range describe.Containers(pod) {
		ids = append(ids, container.ContainerID)
	}
	return ids
}

// EndpointCondition is what an endpoint says of itself.
type EndpointCondition struct {
	name string
	is   func(discoveryv1.EndpointConditions) bool
}

var (
	// EndpointReady endpoints are ready and not terminating.
	EndpointReady = EndpointCondition{"ready", func(c discoveryv1.EndpointConditions) bool {
		return ptr.Deref(c.Ready, false) && !ptr.Deref(c.Terminating, false)
	}}
	// EndpointTerminating endpoints are of pods that are being deleted, and not ready.
	EndpointTerminating = EndpointCondition{"terminating and not ready", func(c discoveryv1.EndpointConditions) bool {
		return !ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false)
	}}
)

// HaveEndpoint matches an EndpointSlice in which the endpoint of a pod is in some condition.
func HaveEndpoint(pod *Object, condition EndpointCondition) types.GomegaMatcher {
	return property(fmt.Sprintf("have an endpoint of %s that is %s", client.Title(pod), condition.name), func(object *Object) bool {
		for _, endpoint := range describe.Endpoints(object) {
			if endpoint.TargetRef != nil && endpoint.TargetRef.UID == pod.GetUID() && condition.is(endpoint.Conditions) {
				return true
			}
		}
		return false
	})
}
