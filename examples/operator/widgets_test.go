// Package operator is an example: an operator's test that it handles the deletion of its objects as Kubernetes promises. The operator runs
// in the test, on a control plane with the garbage collector, and is stopped and started again.
//
// To use it in your project, build Kubernetes once with `runner cluster build`, omit Binaries, and run your manager instead of this one.
package operator

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deletion-conformance/deletion-conformance/conformance"
	"github.com/deletion-conformance/deletion-conformance/conformance/controlplane"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
)

func TestOperatorDeletion(t *testing.T) {
	cluster := controlplane.Start(t, controlplane.Options{Binaries: built(t)})
	if _, err := envtest.InstallCRDs(cluster, envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "envtest", "crds")}}); err != nil {
		t.Fatal(err)
	}

	conformance.Test(t, cluster, conformance.Options{
		Resources:     []string{"widgets.example.com"},
		RunController: func(ctx context.Context) error { return operate(ctx, cluster) },
		Suites:        []string{"operator"},
		Disruptive:    true, // stops the controller
		OwnCluster:    true, // deletes the definition
	})
}

// built is the Kubernetes that `make build` has built in this repository.
func built(t *testing.T) string {
	t.Helper()
	_ = os.Getenv("TEST_RUN") // so that Go does not cache the results: it sees no change of what is started here
	dir, err := binaries.Find(filepath.Join("..", "..", "bin", "kubernetes"), "")
	if err != nil {
		t.Skip(err)
	}
	return dir
}

// finalizer holds a Widget until the operator has handled its deletion.
const finalizer = "widgets.example.com/operator"

// operate runs the operator, with a manager like that of kubebuilder's main function.
func operate(ctx context.Context, cluster *rest.Config) error {
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // it is started more than once
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(newWidget()).Complete(&reconciler{manager.GetClient()}); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func newWidget() *unstructured.Unstructured {
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	return widget
}

// reconciler creates a ConfigMap for each Widget.
type reconciler struct{ client.Client }

// Reconcile adds the finalizer before it creates the ConfigMap, and removes it when the Widget is deleted. The garbage collector deletes
// the ConfigMap.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := newWidget()
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(widget, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, widget))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		if err := r.Update(ctx, widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: widget.GetName(), Namespace: widget.GetNamespace()}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		return controllerutil.SetControllerReference(widget, child, r.Scheme())
	})
	return ctrl.Result{}, err
}
