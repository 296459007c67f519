package cascade

import (
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
)

// workloadKind is a kind whose controller creates other objects.
type workloadKind struct {
	name string
	// made describes what controllers create for it, and orphans what an orphan deletion keeps.
	made, orphans string
	// options are those of its behaviors besides the controllers.
	options []BehaviorOption
	// create creates a workload, and the objects that it needs to create its dependents.
	create func(SpecContext, *Cluster, string, ...ObjectOption) *Object
	// children is the number of objects that its controller creates, and grandchildren the number of pods for each of them.
	children, grandchildren int
	// makes are the kinds of its dependents, in a form that creates nothing.
	makes []*Object
	// canaries are for a barrier of the controllers that create its dependents.
	canaries []*Object
}

var workloadKinds = []workloadKind{
	{
		name: "ReplicationController", made: "pods",
		orphans: "its pods without the owner reference",
		create:  createOnly(fixtures.ReplicationController), children: 2, makes: []*Object{fixtures.UnscheduledPod("pod")},
		canaries: []*Object{fixtures.ReplicationController("canary")},
	},
	{
		name: "ReplicaSet", made: "pods",
		orphans: "its pods without the owner reference",
		create:  createOnly(fixtures.ReplicaSet), children: 2, makes: []*Object{fixtures.UnscheduledPod("pod")},
		canaries: []*Object{fixtures.ReplicaSet("canary")},
	},
	{
		name: "Deployment", made: "ReplicaSet and pods",
		orphans: "its ReplicaSet without the owner reference, and the pods of the ReplicaSet with theirs",
		create:  createOnly(fixtures.Deployment), children: 1, grandchildren: 2,
		makes:    []*Object{with(fixtures.ReplicaSet("idle"), WithField(int64(0), "spec", "replicas")), fixtures.UnscheduledPod("pod")},
		canaries: []*Object{fixtures.Deployment("canary"), fixtures.ReplicaSet("canary")},
	},
	{
		name: "StatefulSet", made: "pods and ControllerRevisions",
		orphans: "its pods and ControllerRevisions without the owner reference",
		create:  createOnly(fixtures.StatefulSet), children: 3,
		makes:    []*Object{fixtures.ControllerRevision(), fixtures.UnscheduledPod("pod")},
		canaries: []*Object{fixtures.StatefulSet("canary")},
	},
	{
		name: "DaemonSet", made: "pods and ControllerRevisions",
		orphans: "its pods and ControllerRevisions without the owner reference",
		options: []BehaviorOption{SimulatedNode},
		create:  createOnOwnNode, children: 2, makes: []*Object{fixtures.ControllerRevision(), fixtures.UnscheduledPod("pod")},
		canaries: []*Object{fixtures.DaemonSet("canary", nodeLabel, "nowhere")},
	},
	{
		name: "Job", made: "pods",
		orphans: "its pods without the owner reference and the finalizer batch.kubernetes.io/job-tracking",
		create:  createOnly(fixtures.Job), children: 2, makes: []*Object{fixtures.UnscheduledPod("pod")},
	},
	{
		name: "CronJob", made: "Job and pods",
		orphans: "its Job without the owner reference, and the pods of the Job with theirs",
		create:  createDue, children: 1, grandchildren: 2,
		makes: []*Object{with(fixtures.Job("idle"), WithField(true, "spec", "suspend")), fixtures.UnscheduledPod("pod")},
	},
}

// policyPromises are the promises for each propagation policy.
var policyPromises = map[string]struct{ page, quote string }{
	"orphan":     {ownersAndDependents, orphanPolicy},
	"background": {garbageCollection, inBackground},
	"foreground": {garbageCollection, afterDependents},
}

// id is the kind in ids of behaviors.
func (w workloadKind) id() string { return strings.ToLower(w.name) }

// deleted returns the behavior of the kind and a policy.
func (w workloadKind) deleted(policy string) []any {
	written := policyPromises[policy]
	options := append([]BehaviorOption{GC, KCM, Source(written.page), Promise(written.quote)}, w.options...)
	return Behavior("cascade.workload."+w.id()+"."+policy, Core, options...)
}

// with applies changes to a manifest.
func with(manifest *Object, changes ...ObjectOption) *Object {
	for _, change := range changes {
		change(manifest)
	}
	return manifest
}

// gracefulPods makes a workload create pods that are bound to a node without a kubelet, so that deleted ones remain for their grace
// period. A hold would conceal a controller that deletes them by force.
func gracefulPods(workload *Object) {
	template := []string{"spec", "template", "spec"}
	if workload.GetKind() == "CronJob" {
		template = append([]string{"spec", "jobTemplate"}, template...)
	}
	node, isOf, _ := unstructured.NestedString(workload.Object, append(slices.Clone(template), "nodeSelector", nodeLabel)...)
	if !isOf {
		node = ghostNode()
	}
	WithField(node, append(template, "nodeName")...)(workload)
}

// ghostNode returns the name of a node that does not exist.
func ghostNode() string { return nodes.Of(fixtures.GhostBoundPod("any")) }

// createOnly creates a workload without other objects.
func createOnly(manifest func(string) *Object) func(SpecContext, *Cluster, string, ...ObjectOption) *Object {
	return func(ctx SpecContext, cluster *Cluster, name string, options ...ObjectOption) *Object {
		GinkgoHelper()
		return cluster.Create(ctx, manifest(name), options...)
	}
}

// nodeLabel is the label with which a spec's DaemonSet selects the spec's nodes; its value is the name of the first.
const nodeLabel = Domain + "/simulated"

// labeledForDaemons adds this label to a node, with the node's name.
func labeledForDaemons(node *Object) { WithLabel(nodeLabel, node.GetName())(node) }

// createOnOwnNode creates a DaemonSet and a node for it, without a kubelet.
func createOnOwnNode(ctx SpecContext, cluster *Cluster, name string, options ...ObjectOption) *Object {
	GinkgoHelper()
	node := cluster.Create(ctx, fixtures.Node("node"), labeledForDaemons)
	return cluster.Create(ctx, fixtures.DaemonSet(name, nodeLabel, node.GetName()), options...)
}

// createDue creates a CronJob that is due.
func createDue(ctx SpecContext, cluster *Cluster, name string, options ...ObjectOption) *Object {
	GinkgoHelper()
	cron := cluster.Create(ctx, fixtures.CronJob(name), options...)
	becomesDue(ctx, cluster, cron)
	return cron
}

// becomesDue sets the last schedule time of a CronJob to years ago, so that it has missed a run since. It uses an update, which fails after
// another write: if the controller has created a Job by then, a second patch would replace it.
func becomesDue(ctx SpecContext, cluster *Cluster, cron *Object) {
	GinkgoHelper()
	longAgo := WithField("2020-06-01T00:00:00Z", "status", "lastScheduleTime")
	Expect(cluster.TryUpdate(ctx, cron, longAgo, "status")).To(HaveStatusCode(http.StatusOK))
}

// workloadFamily is a workload and the objects that controllers created for it.
type workloadFamily struct {
	owner                   *Object
	children, grandchildren []*Object
}

// pods returns the pods of the family.
func (f workloadFamily) pods() []*Object {
	return slices.DeleteFunc(slices.Concat(f.children, f.grandchildren), func(object *Object) bool { return object.GetKind() != "Pod" })
}

// family creates a workload and waits until controllers have created everything for it.
func (w workloadKind) family(ctx SpecContext, cluster *Cluster, options ...ObjectOption) workloadFamily {
	GinkgoHelper()
	for _, kind := range slices.Backward(w.makes) { // the last kind is cleared first
		cluster.Watch(ctx, kind)
	}
	family := workloadFamily{owner: w.create(ctx, cluster, w.id(), options...)}
	family.children = cluster.AwaitDependents(ctx, family.owner, w.children)
	if w.grandchildren > 0 {
		family.grandchildren = cluster.AwaitDependents(ctx, family.children[0], w.grandchildren)
	}
	return family
}

// orphaned deletes a workload and expects all its objects to remain: its children without the reference, theirs with it.
func (w workloadKind) orphaned(ctx SpecContext, cluster *Cluster) {
	family := w.family(ctx, cluster)
	cluster.AwaitCollectorSync(ctx, w.makes...)

	cluster.Delete(ctx, family.owner, Orphan)

	Eventually(ctx, cluster.History(family.owner)).Should(HaveObserved(Terminating(family.owner), Deleted(family.owner)))
	released := func(child *Object) EventMatcher { return Matching(child, And(BeOwnedBy(), untracked)) }
	Eventually(ctx, cluster.History(family.children...)).Should(HaveObserved(Each(released, family.children...)))
	cluster.AwaitCollector(ctx, w.makes[len(w.makes)-1])
	for _, child := range family.children {
		Expect(cluster.Get(ctx, child)).To(And(BeSameObjectAs(child), BeOwnedBy(), Not(BeTerminating())))
	}
	for _, pod := range family.grandchildren {
		Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeOwnedBy(family.children...), Not(BeTerminating())))
	}
}

// collected deletes a workload and expects it to be deleted immediately, and its objects after it.
func (w workloadKind) collected(ctx SpecContext, cluster *Cluster) {
	family := w.family(ctx, cluster)

	cluster.Delete(ctx, family.owner, Background)

	Expect(cluster.TryGet(ctx, family.owner)).To(BeGone())
	made := slices.Concat(family.children, family.grandchildren)
	Eventually(ctx, cluster.History(made...)).Should(HaveObserved(Each(Deleted, made...)))
	Eventually(ctx, cluster.History(family.owner)).Should(HaveObserved(Deleted(family.owner)))
	Expect(cluster.History(family.owner)).NotTo(HaveObserved(Terminating(family.owner)))
}

// awaited deletes a workload and expects it and its objects to wait for the pods.
func (w workloadKind) awaited(ctx SpecContext, cluster *Cluster) {
	family := w.family(ctx, cluster, gracefulPods)
	cluster.AwaitCollectorSync(ctx, w.makes...)

	cluster.Delete(ctx, family.owner, Foreground)

	pods := family.pods()
	Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(Terminating, pods...)))
	cluster.AwaitCollector(ctx, w.makes[len(w.makes)-1])
	waiting := []*Object{family.owner}
	if w.grandchildren > 0 {
		waiting = append(waiting, family.children...)
	}
	for _, object := range waiting {
		Expect(cluster.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizer(metav1.FinalizerDeleteDependents)))
	}

	for _, pod := range pods {
		Expect(cluster.Get(ctx, pod)).To(HaveGracePeriod(30))
		cluster.Delete(ctx, pod, Grace(0))
	}
	all := slices.Concat([]*Object{family.owner}, family.children, pods)
	Eventually(ctx, cluster.History(all...)).Should(HaveObserved(Each(Deleted, all...)))
}

// Every kind is tested with every policy, as the objects that controllers create differ, and Jobs add a finalizer to their pods.
var _ = Describe("Deletion of workloads", func() {
	cluster := UseCluster()

	for _, kind := range workloadKinds {
		Context(kind.name, func() {
			Specify("Orphan deletion of a "+kind.name+" must remove the "+kind.name+" and keep "+kind.orphans+".",
				kind.deleted("orphan"), func(ctx SpecContext) { kind.orphaned(ctx, cluster) })

			Specify("Background deletion of a "+kind.name+" must remove the "+kind.name+" immediately, and then its "+kind.made+".",
				kind.deleted("background"), func(ctx SpecContext) { kind.collected(ctx, cluster) })

			Specify("Foreground deletion of a "+kind.name+" must wait until its pods are removed.",
				kind.deleted("foreground"), func(ctx SpecContext) { kind.awaited(ctx, cluster) })
		})
	}
})
