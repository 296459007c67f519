// Package workloads runs pods, reads how their containers terminated, and has a barrier for the built-in controllers of pods.
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

const (
	// startup is the minimum timeout for a pod to run, because its images may have to be pulled.
	startup = 4 * time.Minute
	// shutdown is the minimum timeout for a pod to terminate. The longest grace period in specs is 50 s.
	shutdown = 2 * time.Minute
)

// RunPod creates a pod and waits until it runs and all its containers are ready.
func RunPod(ctx context.Context, c *framework.Cluster, manifest *framework.Object, options ...framework.ObjectOption) *framework.Object {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, manifest, options...)
	AwaitReady(ctx, c, pod)
	return c.Get(ctx, pod)
}

// StartPod creates a pod and waits until it has an address. Its containers need not be ready.
func StartPod(ctx context.Context, c *framework.Cluster, manifest *framework.Object, options ...framework.ObjectOption) *framework.Object {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, manifest, options...)
	AwaitStart(ctx, c, pod, haveAddress())
	return c.Get(ctx, pod)
}

// AwaitReady waits until a pod runs and all its containers are ready.
func AwaitReady(ctx context.Context, c *framework.Cluster, pod *framework.Object) {
	ginkgo.GinkgoHelper()
	AwaitStart(ctx, c, pod, framework.HaveCondition(string(corev1.PodReady)))
}

// AwaitStart waits until a pod matches.
func AwaitStart(ctx context.Context, c *framework.Cluster, pod *framework.Object, far types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, c.History(pod)).WithTimeout(c.Session().AtLeast(startup)).Should(
		framework.HaveObserved(framework.Matching(pod, far)), "a node must run the pod")
}

// unlabeledPolling is how often specs poll for objects without the run's label, which no watch includes.
const unlabeledPolling = 100 * time.Millisecond

// AwaitUnlabeled waits for an object of a kind with a reference to an owner, in the namespace of the owner. Its creator gives it no labels.
func AwaitUnlabeled(ctx context.Context, c *framework.Cluster, like, owner *framework.Object) (found *framework.Object) {
	ginkgo.GinkgoHelper()
	like.SetNamespace(owner.GetNamespace())
	poll := func() (int, error) {
		objects, err := dependentsOf(ctx, c, like, owner)
		if len(objects) > 0 {
			found = objects[0]
		}
		return len(objects), err
	}
	gomega.Eventually(ctx, poll).WithTimeout(c.Session().AtLeast(startup)).WithPolling(unlabeledPolling).Should(
		framework.Awaited(c, poll, gomega.BeNumerically(">", 0)), fmt.Sprintf("a %s of %s", like.GetKind(), client.Title(owner)))
	return found
}

// dependentsOf lists the objects of a kind with a reference to an owner, in the namespace of the first object.
func dependentsOf(ctx context.Context, c *framework.Cluster, like, owner *framework.Object) ([]*framework.Object, error) {
	objects, response := c.Session().Harness.List(ctx, c.CollectionOf(ctx, like), "")
	return slices.DeleteFunc(objects, func(object *framework.Object) bool {
		return !slices.ContainsFunc(object.GetOwnerReferences(), func(to metav1.OwnerReference) bool { return to.UID == owner.GetUID() })
	}), response.Err
}

// AwaitReplacement waits until a workload has a ready pod other than a lost one, and returns it. It need not be the first one: an eviction for a
// taint deletes the pod that has the name of the evicted one by then (kubernetes/kubernetes#141568).
func AwaitReplacement(ctx context.Context, c *framework.Cluster, controller, lost *framework.Object) (replacement *framework.Object) {
	ginkgo.GinkgoHelper()
	ready := framework.HaveCondition(string(corev1.PodReady))
	poll := func() (bool, error) {
		pods, err := dependentsOf(ctx, c, lost, controller)
		for _, pod := range pods {
			if ok, err := ready.Match(pod); ok && err == nil && pod.GetUID() != lost.GetUID() {
				replacement = pod
				return true, nil
			}
		}
		return false, err
	}
	gomega.Eventually(ctx, poll).WithTimeout(c.Session().AtLeast(startup)).WithPolling(unlabeledPolling).Should(
		framework.Awaited(c, poll, gomega.BeTrue()), fmt.Sprintf("another pod of %s is ready", client.Title(controller)))
	return replacement
}

// AwaitUnlabeledGone waits until an object without labels is gone.
func AwaitUnlabeledGone(ctx context.Context, c *framework.Cluster, object *framework.Object) {
	ginkgo.GinkgoHelper()
	read := func() (framework.Response, error) { return c.TryGet(ctx, object), nil }
	gomega.Eventually(ctx, read).WithPolling(unlabeledPolling).Should(framework.Awaited(c, read, framework.BeGone()))
}

// AwaitTermination waits until a pod that is being deleted is gone, and returns how its containers terminated, by name.
func AwaitTermination(ctx context.Context, c *framework.Cluster, pod *framework.Object) map[string]Termination {
	ginkgo.GinkgoHelper()
	AwaitDeletion(ctx, c, pod)
	return TerminationsOf(c, pod)
}

// AwaitDeletion waits until a pod that is being deleted is gone, and matched all of these states before.
func AwaitDeletion(ctx context.Context, c *framework.Cluster, pod *framework.Object, before ...types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	expected := []framework.EventMatcher{framework.Terminating(pod)}
	if len(before) > 0 {
		expected = append(expected, framework.Matching(pod, gomega.And(before...)))
	}
	gomega.Eventually(ctx, c.History(pod)).WithTimeout(c.Session().AtLeast(shutdown)).Should(
		framework.HaveObserved(append(expected, framework.Deleted(pod))...))
}

// MustServeBudgets skips the spec when the server does not serve PodDisruptionBudgets, which it reads for the eviction of a running pod, and
// without which the disruption controller does not start. The request shows preflight that the spec needs them.
func MustServeBudgets(ctx context.Context, c *framework.Cluster) {
	ginkgo.GinkgoHelper()
	c.List(ctx, c.Prepare(ctx, fixtures.PodDisruptionBudget("any", "any", "any")))
}

// SetPhase sets a pod's status.phase, as its node would.
func SetPhase(ctx context.Context, c *framework.Cluster, pod *framework.Object, phase string) *framework.Object {
	ginkgo.GinkgoHelper()
	return c.SetStatus(ctx, pod, map[string]any{"phase": phase})
}

// Termination is how a container terminated. Times are in whole seconds from the node, corrected to the server's clock.
type Termination struct {
	// SignaledAt is when SIGTERM was received; zero when the container did not record it.
	SignaledAt time.Time
	// FinishedAt is when the container had terminated.
	FinishedAt time.Time
	ExitCode   int32
	// Reason is the reason in the container's status.
	Reason string
	// Restarts is how many containers took the place of the first one, by their IDs. The restartCount of a status also counts a container that was
	// removed and not replaced.
	Restarts int
	// Message is the remaining termination message of the container.
	Message string
}

// TerminationsOf returns how the containers of a pod terminated, by name, from the last event of the pod. It fails the spec when a container
// has no terminated state.
func TerminationsOf(c *framework.Cluster, pod *framework.Object) map[string]Termination {
	ginkgo.GinkgoHelper()
	events, err := c.History(pod).Events()
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	if len(events) == 0 {
		ginkgo.Fail(fmt.Sprintf("no event of %s was observed", client.Title(pod)))
	}
	last := events[len(events)-1].Object
	if !allTerminated(last) {
		ginkgo.Fail(fmt.Sprintf("expected the last state of %s to show every container terminated:\n%s", client.Title(pod), strings.Join(describe.ContainerStates(last), "\n")))
	}
	var states []*framework.Object
	for _, event := range events {
		states = append(states, event.Object)
	}
	restarts := restartsOf(states)
	terminations := map[string]Termination{}
	for _, container := range describe.Containers(last) {
		termination := terminationOf(container.State.Terminated, c.Session().NodeSkews[describe.Pod(last).Spec.NodeName])
		termination.Restarts = restarts[container.Name]
		terminations[container.Name] = termination
	}
	return terminations
}

// restartsOf counts the restarts of containers, by name, in the states of their pod: each container has its own ID, which is also that of the
// last termination after a restart.
func restartsOf(states []*framework.Object) map[string]int {
	ids, restarts := map[string]sets.Set[string]{}, map[string]int{}
	for _, pod := range states {
		for _, container := range describe.Containers(pod) {
			known := ids[container.Name].Union(sets.New(container.ContainerID))
			for _, state := range []corev1.ContainerState{container.State, container.LastTerminationState} {
				if state.Terminated != nil {
					known.Insert(state.Terminated.ContainerID)
				}
			}
			ids[container.Name], restarts[container.Name] = known, max(known.Delete("").Len()-1, 0)
		}
	}
	return restarts
}

// terminationOf reads the state and the termination message: the second of SIGTERM on the first line, then the message. The node's clock is
// ahead of the server's by the skew.
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

// HaveTerminatedContainers matches a pod in whose status every container has terminated.
func HaveTerminatedContainers() types.GomegaMatcher {
	return framework.Property("have only terminated containers", allTerminated)
}

// HaveRunning matches a pod in whose status a container runs.
func HaveRunning(name string) types.GomegaMatcher {
	return framework.Property("have "+name+" running", func(object *framework.Object) bool {
		return slices.ContainsFunc(describe.Containers(object), func(container corev1.ContainerStatus) bool {
			return container.Name == name && container.State.Running != nil
		})
	})
}

// HaveStarted matches a pod of which a container has ever started: it runs, or has an ID or a start time. A container that terminated
// between two updates of the status was never shown as running, but has an ID.
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

// AddressOf returns the address of a running pod.
func AddressOf(pod *framework.Object) string { return describe.Pod(pod).Status.PodIP }

// ContainersOf returns the container IDs of a running pod.
func ContainersOf(pod *framework.Object) []string {
	var ids []string
	for _, container := range describe.Containers(pod) {
		ids = append(ids, container.ContainerID)
	}
	return ids
}
