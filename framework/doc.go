// Package framework is what a spec is written with. A spec reads given, when, then:
//
//	owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
//	child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner, Blocking), Held)
//
//	cluster.Delete(ctx, owner, Foreground)
//
//	Expect(cluster.Get(ctx, owner)).To(BeTerminating())
//	cluster.Release(ctx, child)
//	Eventually(ctx, cluster.History(owner, child)).Should(Show(Deleted(child), Deleted(owner)))
//
// Three techniques keep specs exact and fast. Histories: every kind a spec uses is watched before its first object is
// created, and assertions are about the recorded events. Holds: the framework's own finalizer freezes an object in the
// middle of its deletion until the spec releases it. Barriers: that something does not happen is shown by letting the
// garbage collector finish work it was given later.
package framework
