package gadgets

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mistake is a typical mistake of operators.
type Mistake string

// The mistakes.
const (
	// FinalizerLate adds the finalizer last, so that the children remain if the operator is stopped before.
	FinalizerLate Mistake = "finalizer-late"
	// NoOwnerReference creates a ConfigMap without an owner, and WrongOwner one whose owner reference has another kind.
	NoOwnerReference Mistake = "no-owner-reference"
	WrongOwner       Mistake = "wrong-owner"
	// LeavesSecret does not delete the Secret.
	LeavesSecret Mistake = "leaves-secret"
	// MissesDeletes ignores Gadgets that were deleted while the operator was stopped.
	MissesDeletes Mistake = "misses-deletes"
	// ReleasesAtEnd removes all finalizers when the operator stops.
	ReleasesAtEnd Mistake = "releases-at-end"
	// Recreates creates missing children of terminating Gadgets, too, and RecreatesObject a deleted Gadget, once for each name.
	Recreates       Mistake = "recreates"
	RecreatesObject Mistake = "recreates-object"
	// WritesRecord keeps the finalizer until a record is written to the Gadget's namespace.
	WritesRecord Mistake = "writes-record"
	// ProtectsDefinition releases no Gadget while the definition of Gadgets is being deleted.
	ProtectsDefinition Mistake = "protects-definition"
	// NeverReleases keeps the finalizer.
	NeverReleases Mistake = "never-releases"
	// ForgetsConflicts takes the refusal of a stale write for success, and GivesUp stops reconciling a Gadget after any error.
	ForgetsConflicts Mistake = "forgets-conflicts"
	GivesUp          Mistake = "gives-up"
	// PatchesFinalizers writes the finalizers without the version that they were read with.
	PatchesFinalizers Mistake = "patches-finalizers"
	// StaleCache uses the first Gadget of a name as the owner of the children of all later ones.
	StaleCache Mistake = "stale-cache"
	// ReleasesFirst removes the finalizer before it deletes the Secret, and CleansLate deletes the children some time after that.
	ReleasesFirst Mistake = "releases-first"
	CleansLate    Mistake = "cleans-late"
	// ClearsFinalizers removes the finalizers of others, too.
	ClearsFinalizers Mistake = "clears-finalizers"
	// OverwritesAnnotations removes what others have written.
	OverwritesAnnotations Mistake = "overwrites-annotations"
	// KeepsOldOwner leaves a ConfigMap to a new Gadget that an earlier one of the name owns.
	KeepsOldOwner Mistake = "keeps-old-owner"
	// IgnoresOrphans and IgnoresForeground never release a Gadget that is deleted with these policies.
	IgnoresOrphans    Mistake = "ignores-orphans"
	IgnoresForeground Mistake = "ignores-foreground"
	// WaitsForOthers keeps the finalizer while there are others.
	WaitsForOthers Mistake = "waits-for-others"
	// RemembersNames serves only the first Gadget of a name.
	RemembersNames Mistake = "remembers-names"
	// ServesOnce creates the children only with the finalizer.
	ServesOnce Mistake = "serves-once"
)

// Mistakes are all mistakes.
var Mistakes = []Mistake{
	FinalizerLate, NoOwnerReference, WrongOwner, LeavesSecret, MissesDeletes, ReleasesAtEnd, Recreates, RecreatesObject, WritesRecord, ProtectsDefinition,
	NeverReleases, ForgetsConflicts, GivesUp, PatchesFinalizers, StaleCache, ReleasesFirst, CleansLate, ClearsFinalizers, OverwritesAnnotations,
	KeepsOldOwner, IgnoresOrphans, IgnoresForeground, WaitsForOthers, RemembersNames, ServesOnce,
}

// mistakes are the mistake that an operator makes, and what it remembers for that.
type mistakes struct {
	made Mistake
	// alive are the Gadgets that were observed before they were deleted, and handled those that are not reconciled again, by uid.
	alive, handled sync.Map
	// first are the first Gadgets of names, and recreated those that were created again.
	first, recreated sync.Map
}

func (m *mistakes) makes(mistake Mistake) bool { return m.made == mistake }

func (m *mistakes) makesOneOf(some ...Mistake) bool { return slices.Contains(some, m.made) }

// overlooks reports whether a Gadget is not reconciled by mistake.
func (m *mistakes) overlooks(gadget *unstructured.Unstructured) bool {
	if gadget.GetDeletionTimestamp().IsZero() {
		m.alive.Store(gadget.GetUID(), true)
	}
	finalizers := gadget.GetFinalizers()
	if m.makes(IgnoresOrphans) && slices.Contains(finalizers, "orphan") || m.makes(IgnoresForeground) && slices.Contains(finalizers, "foregroundDeletion") {
		m.handled.Store(gadget.GetUID(), true)
	}
	if _, handled := m.handled.Load(gadget.GetUID()); handled {
		return true
	}
	first, _ := m.first.LoadOrStore(client.ObjectKeyFromObject(gadget), gadget.DeepCopy())
	return m.makes(RemembersNames) && first.(*unstructured.Unstructured).GetUID() != gadget.GetUID()
}

// misjudge returns what an operator makes of an error.
func (m *mistakes) misjudge(gadget *unstructured.Unstructured, err error) error {
	if m.makes(ForgetsConflicts) && apierrors.IsConflict(err) || m.makes(GivesUp) && err != nil {
		m.handled.Store(gadget.GetUID(), true)
		return nil //nolint:nilerr // this is the mistake
	}
	return err
}

// refuses reports whether a terminating Gadget is not released by mistake.
func (m *mistakes) refuses(gadget *unstructured.Unstructured) bool {
	_, known := m.alive.Load(gadget.GetUID())
	return m.makes(NeverReleases) || m.makes(MissesDeletes) && !known || m.makes(WaitsForOthers) && len(gadget.GetFinalizers()) > 1
}

// overwrite removes what others have written.
func (m *mistakes) overwrite(gadget *unstructured.Unstructured) {
	if m.makes(OverwritesAnnotations) {
		gadget.SetAnnotations(map[string]string{"gadgets.example.com/served": "true"})
	}
}

// ownerOf is the Gadget that becomes the owner of children.
func (r *reconciler) ownerOf(gadget *unstructured.Unstructured) *unstructured.Unstructured {
	if first, known := r.first.Load(client.ObjectKeyFromObject(gadget)); known && r.makes(StaleCache) {
		return first.(*unstructured.Unstructured)
	}
	return gadget
}

// recreate creates a Gadget again, once.
func (r *reconciler) recreate(ctx context.Context, name types.NamespacedName) error {
	first, known := r.first.Load(name)
	if _, again := r.recreated.LoadOrStore(name, true); again || !known {
		return nil
	}
	gadget := r.gadget()
	gadget.SetNamespace(name.Namespace)
	gadget.SetName(name.Name)
	gadget.SetLabels(first.(*unstructured.Unstructured).GetLabels())
	gadget.SetAnnotations(first.(*unstructured.Unstructured).GetAnnotations())
	return client.IgnoreAlreadyExists(ignoreTerminating(r.Create(ctx, gadget)))
}

// prepare is what an operator wrongly requires before it releases a Gadget.
func (r *reconciler) prepare(ctx context.Context, gadget *unstructured.Unstructured) error {
	switch r.made { //nolint:exhaustive // others require nothing
	case WritesRecord:
		err := r.Create(ctx, &corev1.ConfigMap{ObjectMeta: named(gadget, "record")})
		if apierrors.IsForbidden(err) {
			return errors.New("no record can be written")
		}
		return client.IgnoreAlreadyExists(err)
	case ProtectsDefinition:
		return r.checkDefinition(ctx)
	}
	return nil
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

// lateness is how long after the release CleansLate deletes children.
const lateness = 300 * time.Millisecond

// cleanLater deletes the children of a Gadget by their names, even if a new Gadget has them.
func (r *reconciler) cleanLater(gadget *unstructured.Unstructured) {
	settings, secret := &corev1.ConfigMap{ObjectMeta: named(gadget, "settings")}, &corev1.Secret{ObjectMeta: named(gadget, "secret")}
	time.AfterFunc(lateness, func() {
		_ = r.Delete(context.Background(), settings) // it may be gone
		_ = r.Delete(context.Background(), secret)
	})
}

// end is called when the operator stops.
func (r *reconciler) end(cluster *rest.Config) error {
	if !r.makes(ReleasesAtEnd) {
		return nil
	}
	direct, err := client.New(cluster, client.Options{}) // the manager's client has stopped
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
		if err := direct.Patch(ctx, &gadget, patch); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
