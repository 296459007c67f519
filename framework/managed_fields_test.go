package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// at sets a resourceVersion.
func at(version string) ObjectOption {
	return func(object *Object) { object.SetResourceVersion(version) }
}

// writes records that a field manager has written fields, in the notation of managedFields.
func writes(manager, fields string) ObjectOption {
	return func(object *Object) {
		object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}))
	}
}

// annotated sets an annotation.
func annotated(name, value string) ObjectOption {
	return func(object *Object) {
		annotations := map[string]string{name: value}
		for known, value := range object.GetAnnotations() {
			annotations[known] = value
		}
		object.SetAnnotations(annotations)
	}
}

const operator = "operator"

func TestWritesOfOthers(t *testing.T) {
	annotation := writes(operator, `{"f:metadata":{"f:annotations":{".":{},"f:revision":{}}}}`)
	status := writes(operator, `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{}}}}`)
	inStatus := func(value string) ObjectOption { return WithField(value, "status", "phase") }
	replicas := func(count int64) ObjectOption { return WithField(count, "spec", "replicas") }
	scaled := writes(operator, `{"f:spec":{"f:replicas":{}}}`)
	entry := WithField([]any{"a", "b"}, "spec", "list")
	generation := func(object *Object) { object.SetGeneration(object.GetGeneration() + 1) }

	for name, test := range map[string]struct {
		first, then []ObjectOption
		others      bool
	}{
		"nothing but a new version":                   {nil, nil, false},
		"an annotation":                               {nil, []ObjectOption{annotation, annotated("revision", "1")}, true},
		"an annotation that nobody says to have made": {nil, []ObjectOption{scaled, annotated("revision", "1")}, false},
		"an annotation of ours":                       {nil, []ObjectOption{writes(Domain, `{"f:metadata":{"f:annotations":{"f:revision":{}}}}`), annotated("revision", "1")}, false},
		"an annotation that is taken away":            {[]ObjectOption{annotation, annotated("revision", "1")}, nil, true},
		"one of the harness's that another writes":    {nil, []ObjectOption{writes(operator, `{"f:metadata":{"f:annotations":{"f:`+Domain+`/note":{}}}}`), annotated(Domain+"/note", "1")}, false},
		"its status":                                  {nil, []ObjectOption{status, inStatus("Ready")}, true},
		"its status, undone":                          {nil, []ObjectOption{status}, true},
		"its status where nobody says who":            {nil, []ObjectOption{inStatus("Ready")}, true},
		"its status by us":                            {nil, []ObjectOption{writes(Domain, `{"f:status":{"f:phase":{}}}`), inStatus("Ready")}, false},
		"its spec":                                    {[]ObjectOption{replicas(1)}, []ObjectOption{scaled, replicas(2), generation}, true},
		"its spec, of which we own the same":          {[]ObjectOption{replicas(1)}, []ObjectOption{scaled, writes(Domain, `{"f:spec":{"f:replicas":{}}}`), replicas(2)}, false},
		"an entry of a list":                          {nil, []ObjectOption{writes(operator, `{"f:spec":{"f:list":{"v:\"b\"":{}}}}`), entry}, true},
		"its generation alone":                        {nil, []ObjectOption{generation}, false},
		"a finalizer of its own":                      {nil, []ObjectOption{WithFinalizers("example.com/cleanup")}, true},
		"a finalizer of its own, gone":                {[]ObjectOption{WithFinalizers("example.com/cleanup", Hold)}, []ObjectOption{Held}, true},
		"the harness's finalizer, lost":               {[]ObjectOption{Held}, []ObjectOption{status, inStatus("Ready")}, false},
		"the collector's finalizer":                   {nil, []ObjectOption{WithFinalizers(metav1.FinalizerOrphanDependents), status, inStatus("Ready")}, false},
		"an owner":                                    {nil, []ObjectOption{OwnedBy(owner), writes(operator, `{"f:metadata":{"f:ownerReferences":{}}}`)}, false},
		"its deletion":                                {nil, []ObjectOption{dying, status, inStatus("Ready")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			earlier, later := stored("o", append(test.first, at("1"))...), stored("o", append(test.then, at("2"))...)

			g.Expect(ChangedByOtherManagers(earlier, later)).To(Equal(test.others))
			if test.others {
				g.Expect(later).To(And(BeUnchangedSince(earlier), HaveStateOf(earlier)))
			} else {
				g.Expect(later).To(And(Not(BeUnchangedSince(earlier)), Not(HaveStateOf(earlier))))
			}
		})
	}
}

func TestHaveObservedOnly_WritesOfOthers(t *testing.T) {
	g := NewWithT(t)
	born := stored("o", at("1"))
	written := stored("o", at("2"), WithField("Ready", "status", "phase"))
	again := stored("o", at("3"), WithField("Ready", "status", "phase"))
	gone := stored("o", at("4"), WithField("Ready", "status", "phase"))

	g.Expect(historyOf([]*Object{born}, added(born), modified(written), deleted(gone))).To(HaveObservedOnly(Added(born), Deleted(born)))
	g.Expect(historyOf([]*Object{born}, added(born), modified(written), modified(again), deleted(gone))).NotTo(
		HaveObservedOnly(Added(born), Deleted(born)), "a write that changes nothing is nobody's")

	later := historyOf([]*Object{born}, modified(written), deleted(gone))
	g.Expect(later).NotTo(HaveObservedOnly(Deleted(born)), "what it was before is not known")
	later.before = &journal.Journal{}
	g.Expect(HaveObservedOnly(Deleted(born)).(interface{ MatchMayChangeInTheFuture(any) bool }).MatchMayChangeInTheFuture(later)).To(BeTrue())
	g.Expect(later).NotTo(HaveObservedOnly(Deleted(born)), "it is not known yet")
	later.before.Add(added(born))
	later.before.Add(modified(written))
	g.Expect(later).To(HaveObservedOnly(Deleted(born)))
}

func TestBeAsBeforeDeletion(t *testing.T) {
	g := NewWithT(t)
	before, after := stored("o", Held), stored("o", Held, dying, graceful(0), WithField("Ready", "status", "phase"))
	after.SetGeneration(2)
	after.SetResourceVersion("8")
	g.Expect(after).To(BeAsBeforeDeletion(before))

	WithoutFinalizers(Hold)(after)
	g.Expect(after).NotTo(BeAsBeforeDeletion(before))
	g.Expect(BeAsBeforeDeletion(before).FailureMessage(after)).To(HaveSuffix(`changed ["metadata.finalizers"]`))
}

func TestHeldByOtherManagers(t *testing.T) {
	g := NewWithT(t)
	cleanup := WithFinalizers("example.com/cleanup")
	g.Expect(heldByOtherManagers(stored("o", dying, cleanup))).To(BeTrue())
	for _, object := range []*Object{
		stored("o", cleanup), stored("o", dying), stored("o", dying, cleanup, Held),
		stored("o", dying, cleanup, WithFinalizers(metav1.FinalizerDeleteDependents)),
	} {
		g.Expect(heldByOtherManagers(object)).To(BeFalse())
	}
	g.Expect(stored("o", Held, cleanup)).To(HaveFinalizers(Hold))
	g.Expect(stored("o", Held, WithFinalizers(metav1.FinalizerOrphanDependents))).NotTo(HaveFinalizers(Hold))
}

func TestHaveIncrementedGeneration(t *testing.T) {
	of := func(generation int64) ObjectOption { return func(object *Object) { object.SetGeneration(generation) } }
	inSpec, inMetadata := writes(operator, `{"f:spec":{}}`), writes(operator, `{"f:metadata":{"f:finalizers":{"v:\"a.io/b\"":{}}}}`)
	for name, test := range map[string]struct {
		first, then []ObjectOption
		matches     bool
	}{
		"once":                               {[]ObjectOption{of(1)}, []ObjectOption{of(2)}, true},
		"not at all":                         {[]ObjectOption{of(1)}, []ObjectOption{of(1)}, false},
		"twice":                              {[]ObjectOption{of(1)}, []ObjectOption{of(3)}, false},
		"also by a write of another manager": {[]ObjectOption{of(1)}, []ObjectOption{of(3), inSpec}, true},
		"only by another manager's write":    {[]ObjectOption{of(1)}, []ObjectOption{of(1), inSpec}, false},
		"twice, with a write of metadata":    {[]ObjectOption{of(1)}, []ObjectOption{of(3), inMetadata}, false},
		"a kind without generations":         {nil, nil, true},
		"a kind that should have none":       {nil, []ObjectOption{of(1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			matcher := HaveIncrementedGeneration(stored("o", test.first...))
			NewWithT(t).Expect(matcher.Match(stored("o", test.then...))).To(Equal(test.matches))
		})
	}
}
