package preflight

import (
	"context"
	"maps"
	"slices"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// findSkips tries in parallel what the specs will do: which of the kinds, permissions and roles that they need are missing, and what admission
// does to their objects. What it cannot determine the specs will.
func findSkips(ctx context.Context, t Target, mutators admission.Mutators) []skip {
	kinds := map[string]bool{}
	for _, id := range t.behaviors() {
		for _, kind := range readFixtures()[id].Kinds() {
			kinds[kind] = true
		}
	}
	probes := []func() []skip{
		func() []skip { return probeRoles(ctx, t, t.Slowed(probeTime)) },
		func() []skip { return probeControlledPods(ctx, t, mutators) },
		func() []skip { return missingPermissions(ctx, t) },
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		probes = append(probes, func() []skip { return probeKind(ctx, t, mutators, kind) })
	}
	found := make([][]skip, len(probes))
	crash.InParallel(probesAtOnce, len(probes), func(i int) { found[i] = probes[i]() })
	return slices.DeleteFunc(slices.Concat(found...), func(one skip) bool { return len(one.behaviors) == 0 })
}
