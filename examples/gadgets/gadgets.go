// Package gadgets is an example: an operator that handles the deletion of its objects as Kubernetes promises. For each Gadget it creates a ConfigMap,
// which the garbage collector deletes with the Gadget, and a Secret without an owner, which it deletes itself before it removes its finalizer.
//
// It can also make typical mistakes of operators, which show what `runner explore --scenario operator` and the suite operator find.
package gadgets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Finalizer holds a Gadget until its Secret is deleted.
const Finalizer = "gadgets.example.com/secret"

// Options of the operator.
type Options struct {
	// Group is the API group of the Gadgets; gadgets.example.com if empty.
	Group string
	// Mistake is one that the operator makes; empty for none.
	Mistake Mistake
	// Workers is the number of Gadgets that are reconciled at the same time; 1 if 0.
	Workers int
}

// Run runs the operator until the context ends. It may be called several times in a process.
func Run(ctx context.Context, cluster *rest.Config, options Options) error {
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"}, // no metrics
		Controller: config.Controller{SkipNameValidation: new(true), MaxConcurrentReconciles: options.Workers},
	})
	if err != nil {
		return err
	}
	kind := schema.GroupVersionKind{Group: options.Group, Version: "v1", Kind: "Gadget"}
	if kind.Group == "" {
		kind.Group = "gadgets.example.com"
	}
	r := &reconciler{Client: manager.GetClient(), uncached: manager.GetAPIReader(), kind: kind, mistakes: mistakes{made: options.Mistake}}
	builder := ctrl.NewControllerManagedBy(manager).Named(kind.Group).For(r.gadget())
	if !r.makesOneOf(KeepsOldOwner, CleansLate) { // these do not notice that a child is gone
		builder = builder.Owns(&corev1.ConfigMap{}).Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(gadgetOf))
	}
	if err := builder.Complete(r); err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return err
	}
	return r.end(cluster)
}

// reconciler reconciles Gadgets.
type reconciler struct {
	client.Client
	// uncached reads from the API server.
	uncached client.Reader
	kind     schema.GroupVersionKind
	mistakes
}

func (r *reconciler) gadget() *unstructured.Unstructured {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(r.kind)
	return gadget
}

// Reconcile serves a Gadget, and releases it when it is deleted.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	gadget := r.gadget()
	if err := r.Get(ctx, request.NamespacedName, gadget); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.forget(ctx, request.NamespacedName)
	}
	if r.overlooks(gadget) {
		return ctrl.Result{}, nil
	}
	reconcile := r.serve
	if !gadget.GetDeletionTimestamp().IsZero() {
		reconcile = r.release
	}
	return ctrl.Result{}, r.misjudge(gadget, ignoreTerminating(reconcile(ctx, gadget)))
}

// forget deletes the Secret of a Gadget that is gone. There is one if a delete removed the Gadget while the finalizer was added.
func (r *reconciler) forget(ctx context.Context, name types.NamespacedName) error {
	if r.makes(RecreatesObject) {
		return r.recreate(ctx, name)
	}
	gadget := r.gadget()
	gadget.SetNamespace(name.Namespace)
	gadget.SetName(name.Name)
	return r.deleteSecret(ctx, gadget)
}

// ignoreTerminating ignores that nothing can be created in a terminating namespace: the Gadget will be deleted, too.
func ignoreTerminating(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// serve adds the finalizer before it creates the children, so that an operator that stops in between cleans up later.
func (r *reconciler) serve(ctx context.Context, gadget *unstructured.Unstructured) error {
	switch {
	case r.makes(FinalizerLate):
		if err := r.makeChildren(ctx, gadget); err != nil {
			return err
		}
		return r.finalize(ctx, gadget)
	case r.makes(ServesOnce) && controllerutil.ContainsFinalizer(gadget, Finalizer):
		return nil
	}
	if err := r.finalize(ctx, gadget); err != nil {
		return err
	}
	return r.makeChildren(ctx, gadget)
}

// finalize adds the finalizer to the version that was read, so that it never replaces the finalizers of others.
func (r *reconciler) finalize(ctx context.Context, gadget *unstructured.Unstructured) error {
	before := gadget.DeepCopy()
	if !controllerutil.AddFinalizer(gadget, Finalizer) {
		return nil
	}
	return r.patch(ctx, gadget, before)
}

// patch writes a change of a version. It is refused if another client has written since.
func (r *reconciler) patch(ctx context.Context, gadget, before *unstructured.Unstructured) error {
	r.overwrite(gadget)
	if r.makes(PatchesFinalizers) {
		return r.Patch(ctx, gadget, client.MergeFrom(before))
	}
	return r.Patch(ctx, gadget, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// makeChildren creates the ConfigMap and the Secret, and corrects those that were left by an earlier Gadget of the name.
func (r *reconciler) makeChildren(ctx context.Context, gadget *unstructured.Unstructured) error {
	settings, secret := &corev1.ConfigMap{ObjectMeta: named(gadget, "settings")}, &corev1.Secret{ObjectMeta: named(gadget, "secret")}
	owner := r.ownerOf(gadget)
	if r.makes(KeepsOldOwner) {
		_ = r.own(owner, settings) // which fails only for an object that another controller owns
		if err := r.Create(ctx, settings); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	} else if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, settings, func() error { return r.own(owner, settings) }); err != nil {
		return err
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		metav1.SetMetaDataLabel(&secret.ObjectMeta, gadgetLabel, gadget.GetName())
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, uidAnnotation, string(gadget.GetUID()))
		return nil
	})
	return err
}

// gadgetLabel is on Secrets, with the name of their Gadget, and uidAnnotation has its uid.
const (
	gadgetLabel   = "gadgets.example.com/gadget"
	uidAnnotation = "gadgets.example.com/uid"
)

// gadgetOf is the Gadget of a Secret.
func gadgetOf(_ context.Context, secret client.Object) []reconcile.Request {
	name, ok := secret.GetLabels()[gadgetLabel]
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: name}}}
}

// own makes a Gadget the owner of a ConfigMap.
func (r *reconciler) own(gadget *unstructured.Unstructured, settings *corev1.ConfigMap) error {
	switch owner := *metav1.NewControllerRef(gadget, r.kind); {
	case r.makes(NoOwnerReference):
		return nil
	case r.makes(WrongOwner):
		owner.Kind = "Gizmo"
		settings.OwnerReferences = []metav1.OwnerReference{owner}
		return nil
	}
	return controllerutil.SetControllerReference(gadget, settings, r.Scheme())
}

// release deletes the Secret, and then removes the finalizer. It does not wait for the finalizers of others.
func (r *reconciler) release(ctx context.Context, gadget *unstructured.Unstructured) error {
	if r.makes(Recreates) {
		defer func() { _ = r.makeChildren(ctx, gadget) }() // also without the finalizer
	}
	if !controllerutil.ContainsFinalizer(gadget, Finalizer) || r.refuses(gadget) {
		return nil
	}
	steps := []func(context.Context, *unstructured.Unstructured) error{r.prepare, r.deleteSecret, r.unfinalize}
	if r.makes(ReleasesFirst) {
		steps = []func(context.Context, *unstructured.Unstructured) error{r.unfinalize, r.deleteSecret}
	}
	for _, step := range steps {
		if err := step(ctx, gadget); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) deleteSecret(ctx context.Context, gadget *unstructured.Unstructured) error {
	if r.makes(LeavesSecret) {
		return nil
	}
	return client.IgnoreNotFound(r.Delete(ctx, &corev1.Secret{ObjectMeta: named(gadget, "secret")}))
}

// unfinalize removes the finalizer, and no other.
func (r *reconciler) unfinalize(ctx context.Context, gadget *unstructured.Unstructured) error {
	before := gadget.DeepCopy()
	controllerutil.RemoveFinalizer(gadget, Finalizer)
	if r.makes(ClearsFinalizers) {
		gadget.SetFinalizers(nil)
	}
	if r.makes(CleansLate) {
		r.cleanLater(gadget)
	}
	if err := r.patch(ctx, gadget, before); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}

// named is the metadata of a child of a Gadget.
func named(gadget *unstructured.Unstructured, what string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: gadget.GetNamespace(), Name: gadget.GetName() + "-" + what}
}
