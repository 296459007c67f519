package environments

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// action is what a controller does for one object. It returns the time after which the object is reconciled again.
type action[O client.Object] func(ctx context.Context, client client.Client, object O) (again time.Duration, err error)

// reconciler calls the action for each object.
type reconciler[O client.Object] struct {
	client client.Client
	action action[O]
}

// Reconcile calls the action.
func (r reconciler[O]) Reconcile(ctx context.Context, object O) (ctrl.Result, error) {
	again, err := r.action(ctx, r.client, object)
	return ctrl.Result{RequeueAfter: again}, client.IgnoreNotFound(err)
}

// control is a part that runs a controller with its own username.
func control[O client.Object](name string, reconciled O, do action[O]) part {
	return func(ctx context.Context, site *site) error {
		kubeconfig, err := site.cluster.AddUser(name, "system:masters")
		if err != nil {
			return err
		}
		rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		rest.QPS = -1 // no rate limit
		manager, err := ctrl.NewManager(rest, ctrl.Options{
			Metrics:    server.Options{BindAddress: "0"}, // no metrics
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			return err
		}
		reconciler := reconciler[O]{client: manager.GetClient(), action: do}
		if err := ctrl.NewControllerManagedBy(manager).Named(name).For(reconciled).Complete(reconcile.AsReconciler(manager.GetClient(), reconciler)); err != nil {
			return err
		}
		return site.start(ctx, name, manager)
	}
}

// start starts a controller and waits until its cache has synced.
func (s *site) start(ctx context.Context, name string, manager ctrl.Manager) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	s.onStop(func() error {
		cancel()
		return <-ended
	})
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("start the controller %s: %w", name, errors.Join(ctx.Err(), errors.New("it does not see the cluster")))
	}
	return nil
}

const (
	// namespaceFinalizer is the finalizer of the controller of namespaces.
	namespaceFinalizer = "tenancy.example.com/archive"
	// configMapFinalizer is the finalizer that the policy of manifests/finalizer.yaml adds.
	configMapFinalizer = "cloud.example.com/free"
	// releasing is how long controllers take to remove their finalizers.
	releasing = 2 * time.Second
	// noticing is the time after which controllers react, because real ones poll every few seconds.
	noticing = 3 * time.Second
)

// governNamespaces adds limits, a quota and a finalizer to each new namespace, as tenant controllers do.
func governNamespaces(ctx context.Context, c client.Client, namespace *corev1.Namespace) (time.Duration, error) {
	name := namespace.Name
	if name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-") {
		return 0, nil
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return release(ctx, c, namespace, namespaceFinalizer)
	}
	for _, object := range []client.Object{limits(name), quota(name)} {
		if err := c.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return 0, err
		}
	}
	if !controllerutil.AddFinalizer(namespace, namespaceFinalizer) {
		return 0, nil
	}
	return 0, c.Update(ctx, namespace)
}

// limits requires resources that small containers rarely set.
func limits(namespace string) *corev1.LimitRange {
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant", Namespace: namespace},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:                 corev1.LimitTypeContainer,
			Min:                  amounts("50m", "64Mi"),
			Default:              amounts("100m", "128Mi"),
			DefaultRequest:       amounts("50m", "64Mi"),
			MaxLimitRequestRatio: amounts("4", "4"),
		}}},
	}
}

// quota is a quota for a small team.
func quota(namespace string) *corev1.ResourceQuota {
	hard := corev1.ResourceList{
		corev1.ResourcePods:              resource.MustParse("20"),
		corev1.ResourceConfigMaps:        resource.MustParse("150"),
		corev1.ResourceServicesNodePorts: resource.MustParse("0"),
		corev1.ResourceRequestsCPU:       resource.MustParse("4"),
		corev1.ResourceLimitsMemory:      resource.MustParse("8Gi"),
	}
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant", Namespace: namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// release removes a finalizer from an object some time after its deletion.
func release(ctx context.Context, c client.Client, object client.Object, finalizer string) (time.Duration, error) {
	if left := releasing - time.Since(object.GetDeletionTimestamp().Time); left > 0 {
		return left, nil
	}
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return 0, nil
	}
	return 0, c.Update(ctx, object)
}

// releaseConfigMaps removes the finalizer that a policy adds.
func releaseConfigMaps(ctx context.Context, c client.Client, object *corev1.ConfigMap) (time.Duration, error) {
	if object.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	return release(ctx, c, object, configMapFinalizer)
}

// deleteUnknownNodes deletes Nodes that the cloud does not know, as cloud node controllers do.
func deleteUnknownNodes(ctx context.Context, c client.Client, node *corev1.Node) (time.Duration, error) {
	if left := noticing - time.Since(node.CreationTimestamp.Time); left > 0 {
		return left, nil
	}
	return 0, c.Delete(ctx, node, client.Preconditions{UID: &node.UID})
}

// optOuts are the annotations with which pods opt out of eviction by autoscalers.
var optOuts = map[string]string{
	"karpenter.sh/do-not-disrupt":                    "true",
	"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}

// evictBarePods evicts pods without an owner, as deschedulers and autoscalers do, unless they opt out.
func evictBarePods(ctx context.Context, c client.Client, pod *corev1.Pod) (time.Duration, error) {
	for key, value := range optOuts {
		if pod.Annotations[key] == value {
			return 0, nil
		}
	}
	return evictEveryBarePod(ctx, c, pod)
}

// evictEveryBarePod evicts pods without an owner, regardless of their annotations.
func evictEveryBarePod(ctx context.Context, c client.Client, pod *corev1.Pod) (time.Duration, error) {
	if len(pod.OwnerReferences) > 0 || !pod.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	if left := noticing - time.Since(pod.CreationTimestamp.Time); left > 0 {
		return left, nil
	}
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}}
	return 0, c.SubResource("eviction").Create(ctx, pod, eviction)
}
