package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// finalizer holds a Gadget until its Secret is deleted.
const finalizer = "gadgets.example.com/secret"

// The mistakes of the operator.
const (
	// finalizerLate: the finalizer is added last, so that the children remain if the operator is stopped before.
	finalizerLate = "finalizer-late"
	// noOwnerReference: the ConfigMap has no owner.
	noOwnerReference = "no-owner-reference"
	// wrongOwner: the ConfigMap's owner reference has another kind.
	wrongOwner = "wrong-owner"
	// leavesSecret: the Secret is not deleted.
	leavesSecret = "leaves-secret"
	// missesDeletes: Gadgets that were deleted while the operator was stopped are ignored.
	missesDeletes = "misses-deletes"
	// releasesAtEnd: an operator that is stopped removes its finalizers.
	releasesAtEnd = "releases-at-end"
	// recreates: missing children are recreated for terminating Gadgets, too.
	recreates = "recreates"
	// writesRecord: the finalizer remains until a record is written to the Gadget's namespace.
	writesRecord = "writes-record"
	// protectsDefinition: no Gadget is released while the definition of Gadgets is being deleted.
	protectsDefinition = "protects-definition"
	// neverReleases: the finalizer stays.
	neverReleases = "never-releases"
)

var mistakes = []string{
	finalizerLate, noOwnerReference, wrongOwner, leavesSecret, missesDeletes, releasesAtEnd, recreates, writesRecord, protectsDefinition,
	neverReleases,
}

func isMistake(name string) bool { return name == "" || slices.Contains(mistakes, name) }

// reconciler reconciles Gadgets.
type reconciler struct {
	client.Client
	// uncached reads from the API server.
	uncached client.Reader
	kind     schema.GroupVersionKind
	mistake  string
	// alive are the Gadgets that were observed before they were deleted, by uid.
	alive sync.Map
}

// Reconcile creates the children of a Gadget, and releases it when it is deleted.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(r.kind)
	if err := r.Get(ctx, request.NamespacedName, gadget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if gadget.GetDeletionTimestamp() == nil {
		r.alive.Store(gadget.GetUID(), true)
		return ctrl.Result{}, r.adopt(ctx, gadget)
	}
	if err := r.release(ctx, gadget); err != nil || r.mistake != recreates {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.makeChildren(ctx, gadget)
}

// adopt adds the finalizer, and creates the children of a Gadget.
func (r *reconciler) adopt(ctx context.Context, gadget *unstructured.Unstructured) error {
	steps := []func(context.Context, *unstructured.Unstructured) error{r.finalize, r.makeChildren}
	if r.mistake == finalizerLate {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(ctx, gadget); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) finalize(ctx context.Context, gadget *unstructured.Unstructured) error {
	if !controllerutil.AddFinalizer(gadget, finalizer) {
		return nil
	}
	return r.Update(ctx, gadget)
}

// makeChildren creates the ConfigMap and the Secret if they are missing.
func (r *reconciler) makeChildren(ctx context.Context, gadget *unstructured.Unstructured) error {
	settings := &corev1.ConfigMap{ObjectMeta: named(gadget, "settings")}
	owner := *metav1.NewControllerRef(gadget, r.kind)
	switch r.mistake {
	case noOwnerReference:
	case wrongOwner:
		owner.Kind = "Gizmo"
		settings.OwnerReferences = []metav1.OwnerReference{owner}
	default:
		settings.OwnerReferences = []metav1.OwnerReference{owner}
	}
	for _, child := range []client.Object{settings, &corev1.Secret{ObjectMeta: named(gadget, "secret")}} {
		if err := r.Create(ctx, child); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// release deletes the Secret and removes the finalizer.
func (r *reconciler) release(ctx context.Context, gadget *unstructured.Unstructured) error {
	_, known := r.alive.Load(gadget.GetUID())
	if !controllerutil.ContainsFinalizer(gadget, finalizer) || r.mistake == missesDeletes && !known || r.mistake == neverReleases {
		return nil
	}
	if r.mistake == protectsDefinition {
		if err := r.checkDefinition(ctx); err != nil {
			return err
		}
	}
	if r.mistake == writesRecord {
		record := &corev1.ConfigMap{ObjectMeta: named(gadget, "record")}
		if err := r.Create(ctx, record); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if r.mistake != leavesSecret {
		if err := client.IgnoreNotFound(r.Delete(ctx, &corev1.Secret{ObjectMeta: named(gadget, "secret")})); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(gadget, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, gadget))
}

// checkDefinition fails while the definition of Gadgets is being deleted.
func (r *reconciler) checkDefinition(ctx context.Context) error {
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	err := r.uncached.Get(ctx, types.NamespacedName{Name: "gadgets." + r.kind.Group}, definition)
	if err == nil && definition.GetDeletionTimestamp() != nil {
		return errors.New("the definition of Gadgets is being deleted")
	}
	return err
}

// end is called when the operator stops.
func (r *reconciler) end(config *rest.Config) error {
	if r.mistake != releasesAtEnd {
		return nil
	}
	direct, err := client.New(config, client.Options{}) // the manager's client has stopped
	if err != nil {
		return err
	}
	ctx, all := context.Background(), &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(r.kind)
	if err := direct.List(ctx, all); err != nil {
		return err
	}
	for _, gadget := range all.Items {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := direct.Patch(ctx, &gadget, patch); err != nil {
			return err
		}
	}
	return nil
}

// named returns the metadata of a child of a Gadget.
func named(gadget *unstructured.Unstructured, what string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: gadget.GetNamespace(), Name: gadget.GetName() + "-" + what}
}
