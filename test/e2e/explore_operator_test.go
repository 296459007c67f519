package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

const tenants = "tenants.operated.example.com"

// tenantOperator writes Tenants in each way in which operators do: it adds a finalizer, sets a default and the status, removes its finalizer from what
// is deleted, deletes some Tenants, and creates others again.
type tenantOperator struct {
	client.Client
	mu sync.Mutex
	// alive are the Tenants as they were before they were deleted, and recreated those that were created again, once each.
	alive     map[types.NamespacedName]*unstructured.Unstructured
	recreated map[types.NamespacedName]bool
}

func newTenant() *unstructured.Unstructured {
	tenant := &unstructured.Unstructured{}
	tenant.SetGroupVersionKind(schema.GroupVersionKind{Group: "operated.example.com", Version: "v1", Kind: "Tenant"})
	return tenant
}

// operateTenants runs the operator until the test ends.
func (c *cluster) operateTenants(t *testing.T) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(c.config, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Logger:     logr.Discard(), // conflicts with the run are errors
		Controller: config.Controller{SkipNameValidation: new(true), MaxConcurrentReconciles: 3},
	})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	operator := &tenantOperator{
		Client: manager.GetClient(), alive: map[types.NamespacedName]*unstructured.Unstructured{}, recreated: map[types.NamespacedName]bool{},
	}
	g.Expect(ctrl.NewControllerManagedBy(manager).For(newTenant()).Complete(operator)).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	})
}

// Reconcile writes one Tenant.
func (o *tenantOperator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	tenant := newTenant()
	if err := o.Get(ctx, request.NamespacedName, tenant); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, client.IgnoreAlreadyExists(o.recreate(ctx, request.NamespacedName))
	}
	if tenant.GetDeletionTimestamp() != nil {
		if controllerutil.RemoveFinalizer(tenant, "operated.example.com/tenant") {
			return ctrl.Result{}, client.IgnoreNotFound(o.Update(ctx, tenant))
		}
		return ctrl.Result{}, nil
	}
	o.note(request.NamespacedName, tenant)
	return ctrl.Result{}, client.IgnoreNotFound(o.write(ctx, tenant))
}

// write makes the next of the operator's writes that a living Tenant lacks.
func (o *tenantOperator) write(ctx context.Context, tenant *unstructured.Unstructured) error {
	if controllerutil.AddFinalizer(tenant, "operated.example.com/tenant") {
		return o.Update(ctx, tenant)
	}
	if _, set, _ := unstructured.NestedFieldNoCopy(tenant.Object, "spec", "size"); !set {
		return o.Patch(ctx, tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":1}}`)))
	}
	observed, _, _ := unstructured.NestedString(tenant.Object, "status", "observed")
	if label := tenant.GetLabels()["deletion-conformance.github.io/state"]; observed != "is "+label {
		_ = unstructured.SetNestedField(tenant.Object, "is "+label, "status", "observed")
		return o.Status().Update(ctx, tenant)
	} else if label == "y" && strings.HasSuffix(tenant.GetName(), "-c") {
		return o.Delete(ctx, tenant)
	}
	return nil
}

func (o *tenantOperator) note(name types.NamespacedName, tenant *unstructured.Unstructured) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.alive[name] = tenant.DeepCopy()
}

// recreate creates a Tenant again, for every third name.
func (o *tenantOperator) recreate(ctx context.Context, name types.NamespacedName) error {
	o.mu.Lock()
	before, again := o.alive[name], o.recreated[name]
	o.recreated[name] = true
	o.mu.Unlock()
	if before == nil || again || !strings.HasSuffix(name.Name, "-a") {
		return nil
	}
	tenant := newTenant()
	tenant.SetNamespace(name.Namespace)
	tenant.SetName(name.Name)
	tenant.SetLabels(before.GetLabels())
	return o.Create(ctx, tenant)
}

func TestExplore_Operator(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	c.define(t, "operated.yaml")
	c.operateTenants(t)

	ran := startRunIn(t, emptyEnvironment(t), "explore", "--kubeconfig", c.admin(t, "explorer-operator"), "--resource", tenants, "--for", "30s", "--seed", "7").wait()

	ran.foundNothing(t)
	g.Expect(reasons(ran.explored(t), v1alpha1.Failed)).To(BeEmpty())
	g.Expect(reasons(ran.explored(t), v1alpha1.Passed)).To(And(HaveKey("explore.object.one-order"), HaveKey("explore.watch.complete")))

	broken := startRunIn(t, emptyEnvironment(t), "explore", "--kubeconfig", c.withoutPreconditions(t), "--resource", tenants, "--for", "4m", "--reduce-for", "0",
		"--seed", "7").wait()

	g.Expect(broken.code).To(Equal(1))
	g.Expect(reasons(broken.explored(t), v1alpha1.Failed)).To(HaveKey("explore.object.one-order"))
}
