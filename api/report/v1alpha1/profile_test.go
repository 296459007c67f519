package v1alpha1

import (
	"slices"
	"testing"
)

func TestProfile_EveryFeature(t *testing.T) {
	for _, feature := range Features {
		if profile := (Behavior{Features: []Feature{feature}}).Profile(); !slices.Contains(Profiles, profile) {
			t.Errorf("the profile of %s is %q", feature, profile)
		}
		count := 0
		for _, of := range featureProfiles {
			if of.feature == feature {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d profiles have %s", count, feature)
		}
	}
}

func TestProfile(t *testing.T) {
	for _, test := range []struct {
		features []Feature
		want     Profile
	}{
		{nil, ProfileAPI},
		{[]Feature{CRD, Admin}, ProfileAPI},
		{[]Feature{SimulatedNode}, ProfileAPI},
		{[]Feature{GC, CRD}, ProfileControllers},
		{[]Feature{Namespace}, ProfileControllers},
		{[]Feature{KCM, Namespace, Hook}, ProfileAdmission},
		{[]Feature{Hook, Node}, ProfileNode},
		{[]Feature{KCM, Node, TwoNodes}, ProfileNode},
		{[]Feature{GC, KCM, Kubectl}, ProfileKubectl},
		{[]Feature{KCM, Namespace, Controller}, ProfileOperator},
	} {
		if got := (Behavior{Features: test.features}).Profile(); got != test.want {
			t.Errorf("the profile of %v is %s, not %s", test.features, got, test.want)
		}
	}
}

func TestCatalogDigest(t *testing.T) {
	a := Behavior{ID: "finalizers.a", Level: Core, Statement: "A must be."}
	b := Behavior{ID: "watch.b", Level: Observed, Features: []Feature{GC}, Statement: "B is.", Since: "1.30"}
	digest := CatalogDigest([]Behavior{a, b})
	empty := a
	empty.Features, empty.File, empty.Line = []Feature{}, "suites/a.go", 7
	if same := CatalogDigest([]Behavior{b, empty}); same != digest {
		t.Errorf("the order, the location and the form of no features change the digest: %s, not %s", same, digest)
	}
	for name, change := range map[string]func(*Behavior){
		"id":        func(b *Behavior) { b.ID = "watch.c" },
		"level":     func(b *Behavior) { b.Level = Core },
		"features":  func(b *Behavior) { b.Features = nil },
		"since":     func(b *Behavior) { b.Since = "" },
		"statement": func(b *Behavior) { b.Statement = "B was." },
	} {
		changed := b
		change(&changed)
		if CatalogDigest([]Behavior{a, changed}) == digest {
			t.Errorf("the digest does not contain the %s", name)
		}
	}
	if CatalogDigest([]Behavior{a}) == digest {
		t.Error("the digest does not contain every behavior")
	}
}
