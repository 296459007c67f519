// Package workloads is what specs need of pods and of the built-in controllers that make them: to run pods, to see how their containers
// ended, and a barrier for what a controller does not do.
package workloads

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

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

const (
	// startup is how long a pod may take to run, or longer if the run waits longer: its images may have to be pulled.
	startup = 4 * time.Minute
	// shutdown is how long a pod may take to end, or longer if the run waits longer. The longest grace that a spec
	// waits for is 28 s.
	shutdown = 2 * time.Minute
)

// RunPod creates a pod and waits until a node runs it and all its containers say that they are ready.
func RunPod(ctx context.Context, c *framework.Cluster, manifest *framework.Object, options ...framework.ObjectOption) *framework.Object {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, manifest, options...)
	AwaitReady(ctx, c, pod)
	return c.Get(ctx, pod)
}

// StartPod creates a pod and waits until a node has given it an address. Its containers need not be ready.
func StartPod(ctx context.Context, c *framework.Cluster, manifest *framework.Object, options ...framework.ObjectOption) *framework.Object {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, manifest, options...)
	AwaitStart(ctx, c, pod, haveAddress())
	return c.Get(ctx, pod)
}

// AwaitReady waits until a node runs a pod and all its containers say that they are ready.
func AwaitReady(ctx context.Context, c *framework.Cluster, pod *framework.Object) {
	ginkgo.GinkgoHelper()
	AwaitStart(ctx, c, pod, framework.HaveCondition(string(corev1.PodReady)))
}

// AwaitStart waits until a node has got as far with a pod as is asked for.
func AwaitStart(ctx context.Context, c *framework.Cluster, pod *framework.Object, far types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, c.History(pod)).WithTimeout(c.AtLeast(startup)).Should(
		framework.HaveObserved(framework.Matching(pod, far)), "a node runs the pod")
}

// AwaitTermination waits until a pod is gone that is being deleted, and says how its containers ended, by name.
func AwaitTermination(ctx context.Context, c *framework.Cluster, pod *framework.Object) map[string]Termination {
	ginkgo.GinkgoHelper()
	AwaitDeletion(ctx, c, pod)
	return terminations(c, pod)
}

// AwaitDeletion waits until a pod is gone that is being deleted, and was seen to be all this before.
func AwaitDeletion(ctx context.Context, c *framework.Cluster, pod *framework.Object, before ...types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	expected := []framework.EventMatcher{framework.Terminating(pod)}
	if len(before) > 0 {
		expected = append(expected, framework.Matching(pod, gomega.And(before...)))
	}
	gomega.Eventually(ctx, c.History(pod)).WithTimeout(c.AtLeast(shutdown)).Should(
		framework.HaveObserved(append(expected, framework.Deleted(pod))...))
}

// SetPhase writes a pod's status.phase, as its node would.
func SetPhase(ctx context.Context, c *framework.Cluster, pod *framework.Object, phase string) *framework.Object {
	ginkgo.GinkgoHelper()
	return c.SetStatus(ctx, pod, map[string]any{"phase": phase})
}

// Termination is how a container ended. Times are those that the node wrote in whole seconds, corrected to the server's clock.
type Termination struct {
	// SignaledAt is when SIGTERM was received; zero when the container noted none.
	SignaledAt time.Time
	// FinishedAt is when the container was gone.
	FinishedAt time.Time
	ExitCode   int32
	// Reason is the node's word for it.
	Reason string
	// Restarts is how often the container was started again.
	Restarts int32
	// Message is the rest of what the container noted.
	Message string
}

// terminations are how the containers of a pod ended, by name, as the last event before the pod was gone shows them. It ends
// the spec when a container is not shown to have ended.
func terminations(c *framework.Cluster, pod *framework.Object) map[string]Termination {
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
		termination := terminationOf(container.State.Terminated, c.Session().NodeSkews[describe.Pod(last).Spec.NodeName])
		termination.Restarts = container.RestartCount
		terminations[container.Name] = termination
	}
	return terminations
}

// terminationOf reads the state, and the note that the container left: the second of SIGTERM first, the message behind it. The node's
// clock is ahead of the server's by the skew.
func terminationOf(state *corev1.ContainerStateTerminated, skew time.Duration) Termination {
	termination := Termination{FinishedAt: state.FinishedAt.Add(-skew), ExitCode: state.ExitCode, Reason: state.Reason}
	note, message, _ := strings.Cut(strings.TrimSpace(state.Message), "\n")
	if seconds, err := strconv.ParseInt(note, 10, 64); err == nil {
		termination.SignaledAt = time.Unix(seconds, 0).Add(-skew)
	}
	termination.Message = message
	return termination
}

func allTerminated(pod *framework.Object) bool {
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
	return framework.Property("have only terminated containers", allTerminated)
}

// HaveRunning matches a pod of which a container is shown to run.
func HaveRunning(name string) types.GomegaMatcher {
	return framework.Property("have "+name+" running", func(object *framework.Object) bool {
		return slices.ContainsFunc(describe.Containers(object), func(container corev1.ContainerStatus) bool {
			return container.Name == name && container.State.Running != nil
		})
	})
}

// HaveStarted matches a pod of which a container was ever started: it runs, or has an ID or a start time. A container that
// ended between two updates of the status was never shown to run, and has an ID nevertheless.
func HaveStarted(name string) types.GomegaMatcher {
	return framework.Property("have started "+name, func(object *framework.Object) bool {
		return slices.ContainsFunc(describe.Containers(object), func(container corev1.ContainerStatus) bool {
			state := container.State
			return container.Name == name && (state.Running != nil || container.ContainerID != "" ||
				state.Terminated != nil && (state.Terminated.ContainerID != "" || !state.Terminated.StartedAt.IsZero()))
		})
	})
}

func haveAddress() types.GomegaMatcher {
	return framework.Property("have an address", func(object *framework.Object) bool { return AddressOf(object) != "" })
}

// AddressOf is the address of a pod that runs.
func AddressOf(pod *framework.Object) string { return describe.Pod(pod).Status.PodIP }

// ContainersOf are the runtime's ids of the containers of a pod that runs.
func ContainersOf(pod *framework.Object) []string {
	var ids []string
	for _, container := range describe.Containers(pod) {
		ids = append(ids, container.ContainerID)
	}
	return ids
}
