package operator

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coordination "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// node is the node to which pods of operators are bound.
const node = "harbour"

// kubelet plays the kubelet for pods of operators: it runs the program of a pod as a process next to the cluster, and removes a deleted pod
// when its process has ended.
type kubelet struct {
	t       *testing.T
	program string
	// kubeconfig is the kubeconfig of the programs.
	kubeconfig string
	client     kubernetes.Interface
	processes  map[types.UID]*process
	ending     sync.WaitGroup
}

// process is the program of a pod.
type process struct {
	command *exec.Cmd
	output  bytes.Buffer
	// terminated is closed when it is terminated, and ended when it has ended.
	terminated, ended chan struct{}
	telling           sync.Once
}

// startKubelet starts it for one node, until the test ends.
func startKubelet(t *testing.T, client kubernetes.Interface, program, kubeconfig string) {
	t.Helper()
	k := &kubelet{t: t, program: program, kubeconfig: kubeconfig, client: client, processes: map[types.UID]*process{}}
	ready := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), ready, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.attend(object) },
		UpdateFunc: func(_, object any) { k.attend(object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	k.ending.Go(func() { wait.UntilWithContext(ctx, k.renewLease, renewInterval) })
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
		k.ending.Wait()
		for _, running := range k.processes {
			running.end()
			if t.Failed() {
				t.Logf("%v said:\n%s", running.command.Args, running.output.String())
			}
		}
	})
}

// renewInterval is the interval at which the Lease of the node is renewed, a kubelet's default.
const renewInterval = 10 * time.Second

// renewLease renews the Lease of the node. Without it the node lifecycle controller takes the node for lost after a minute: then it marks pods not
// ready that became ready before it has seen them. What fails is tried again after the interval.
func (k *kubelet) renewLease(ctx context.Context) {
	spec := coordination.LeaseSpec().WithHolderIdentity(node).WithRenewTime(metav1.NowMicro())
	lease := coordination.Lease(node, corev1.NamespaceNodeLease).WithSpec(spec)
	_, _ = k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Apply(ctx, lease, metav1.ApplyOptions{FieldManager: node})
}

// attend handles an event of a pod.
func (k *kubelet) attend(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	running := k.processes[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil:
		k.ending.Go(func() { // which may take a while, so that others must not wait for it
			if running != nil {
				running.end()
			}
			k.confirm(pod)
		})
	case running == nil:
		k.start(pod)
	}
}

// start starts a pod's program, and reports that the pod is ready.
func (k *kubelet) start(pod *corev1.Pod) {
	started := &process{terminated: make(chan struct{}), ended: make(chan struct{})}
	started.command = exec.Command(k.program, append(pod.Spec.Containers[0].Args, "-kubeconfig", k.kubeconfig)...)
	started.command.Stdout, started.command.Stderr = &started.output, &started.output
	_, err := started.command.StdinPipe() // it ends with this process
	if err := errors.Join(err, started.command.Start()); err != nil {
		k.t.Error(err)
		return
	}
	go k.await(started)
	k.processes[pod.UID] = started
	running := pod.DeepCopy()
	running.Status.Phase = corev1.PodRunning
	running.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if _, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(context.Background(), running, metav1.UpdateOptions{}); err != nil {
		k.t.Errorf("say that pod %s is ready: %v", pod.Name, err)
	}
}

// await waits for the end of a process, which must have been terminated.
func (k *kubelet) await(running *process) {
	err := running.command.Wait()
	select {
	case <-running.terminated:
	default:
		k.t.Errorf("%v ended by itself: %v", running.command.Args, err)
	}
	close(running.ended)
}

// confirm removes a pod whose process has ended.
func (k *kubelet) confirm(pod *corev1.Pod) {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, now)
	if err != nil && !apierrors.IsNotFound(err) {
		k.t.Errorf("confirm the end of pod %s: %v", pod.Name, err)
	}
}

// end terminates a process, and waits until it has ended.
func (p *process) end() {
	p.telling.Do(func() { close(p.terminated) })
	_ = p.command.Process.Signal(syscall.SIGTERM)
	<-p.ended
}
