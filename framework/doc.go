// Package framework is the language of specs. A spec has the parts given, when and then:
//
//	owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
//	child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner, Blocking), Held)
//
//	cluster.Delete(ctx, owner, Foreground)
//
//	Expect(cluster.Get(ctx, owner)).To(BeTerminating())
//	cluster.Release(ctx, child)
//	Eventually(ctx, cluster.History(owner, child)).Should(HaveObserved(Deleted(child), Deleted(owner)))
//
// Three techniques keep specs exact and fast. Histories: every kind that a spec uses is watched before its first object is created, and
// assertions are about the recorded events. Holds: the framework's finalizer freezes an object in mid-deletion until the spec releases it.
// Barriers: to show that something does not happen, a spec waits until the garbage collector has finished work that it received later.
package framework
