package reporttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// Fleet is a report of many behaviours on many clusters with timelines as real runs have them: most behaviours pass,
// some fail on one cluster, one cluster has no nodes, one is slow. The same numbers make the same report.
func Fleet(behaviors, clusters int) v1alpha1.Report {
	r := Sample()
	r.Clusters = nil
	for c := range clusters {
		random := rand.New(rand.NewPCG(uint64(c), 7)) //nolint:gosec // the same numbers must make the same report
		name := clusterNames[c%len(clusterNames)]
		if c >= len(clusterNames) {
			name = fmt.Sprintf("%s-%d", name, c/len(clusterNames)+1)
		}
		cluster := v1alpha1.Cluster{Name: name, ServerVersion: fmt.Sprintf("v1.%d.%d", 29+c%8, c%5), NodeRuntime: "containerd://2.1.4"}
		if c%5 == 3 {
			cluster.NodeRuntime = ""
		}
		for b := range behaviors {
			cluster.Results = append(cluster.Results, fleetResult(random, c, b))
		}
		slices.SortFunc(cluster.Results, func(a, b v1alpha1.Result) int { return strings.Compare(a.ID, b.ID) })
		r.Clusters = append(r.Clusters, cluster)
	}
	r.End = r.Start.Add(94 * time.Second)
	return figures.Measure(r)
}

var clusterNames = []string{
	"kind-v1.36", "gke_acme-prod_europe-west4_main", "arn:aws:eks:eu-central-1:123456789012:cluster/shop", "vcluster-dev",
	"k3s-edge-17", "aks-westeurope-platform", "openshift-lab", "talos-metal",
}

// catalogue are rows as the real catalogue has them: id, statement, level and needs.
var catalogue = []string{
	"cascade.background.owner-goes-first|lets the owner go at once and its dependents after it|core|gc",
	"cascade.background.dependents-follow|collects every dependent, of whatever kind|core|gc",
	"cascade.background.held-dependent|keeps a dependent with a finalizer, terminating, until it is released|core|gc",
	"cascade.background.every-level|takes grandchildren too, with no second request|core|gc",
	"cascade.background.late-dependent|collects a dependent created after the owner went|core|gc",
	"cascade.background.overrides-finalizer|drops an orphan or foregroundDeletion finalizer that the object carried|core|",
	"cascade.background.collector-names-uid|deletes by uid, so that a namesake created meanwhile is untouched|observed|gc hook",
	"cascade.foreground.deletion-in-progress|shows deletionTimestamp, grace 0 and foregroundDeletion while the owner stays visible|core|gc",
	"cascade.foreground.blocking-dependents-first|outlives every blocking dependent|core|gc",
	"cascade.foreground.bottom-up|goes bottom-up in a chain of three|core|gc",
	"cascade.foreground.circle|deletes objects that own each other in a circle|core|gc",
	"cascade.foreground.unblocked-midway|releases the waiting owner when blockOwnerDeletion becomes false|core|gc",
	"cascade.foreground.dependent-created-midway|deletes and waits for a blocking dependent created while the owner waits|observed|gc",
	"cascade.foreground.policy-change-midway|saves the held dependents when a repeated delete asks for Orphan|observed|gc",
	"cascade.orphan.dependents-survive|leaves every dependent, each without the reference to the owner|core|gc",
	"cascade.orphan.finalizer-first|keeps the finalizer orphan on the owner until its dependents are released|core|gc",
	"cascade.orphan.stays-orphaned|does not collect an orphan later, and a new controller adopts it|core|kcm",
	"cascade.options.contradiction|refuses orphanDependents together with propagationPolicy, and deletes nothing|core|",
	"cascade.permission.block-needs-finalizers|needs update on the owner's finalizers to set blockOwnerDeletion|extended|admin",
	"graceful.default-thirty|gives thirty seconds to a pod that says nothing|core|",
	"graceful.options-override|lets gracePeriodSeconds in the options win over the spec, longer or shorter|core|",
	"graceful.shorter-wins|moves deletionTimestamp earlier when a later delete is shorter|core|",
	"graceful.longer-is-ignored|changes nothing when a later delete is longer|core|",
	"graceful.timestamp-is-immutable|lets no update, patch or status write clear or move deletionTimestamp|core|",
	"graceful.node.term-then-gone|sends SIGTERM and lets the pod go when its containers have exited|core|node",
	"graceful.node.kill-after-grace|kills a container that ignores SIGTERM when the grace ends, not before and not much later|core|node",
	"graceful.node.sidecars-last|stops restartable init containers after the main ones, in reverse order|extended|node",
	"finalizers.held|answers 200 with the object and keeps it visible with everything else as it was|core|",
	"finalizers.last-one-out|removes the object with its last finalizer, with no second delete|core|",
	"finalizers.no-new-ones|refuses a new finalizer on a terminating object|core|",
	"finalizers.namespace.takes-content|deletes everything in a namespace, custom resources included|core|kcm admin",
	"finalizers.namespace.says-what-holds-it|names the resource, the finalizer and the count that hold a namespace|core|kcm admin",
	"admission.sees-old-object|shows the webhook oldObject, the delete options, the user and the dryRun flag|core|hook",
	"admission.failure-policy|refuses the delete when the webhook is unreachable and the policy is Fail|core|hook",
	"kubectl.cascade|sends the policy that --cascade names; nothing said means background|core|",
	"kubectl.grace|sends 1 for --now, and 0 only with --force|core|",
}

var workloads = []string{"replicationcontroller", "replicaset", "deployment", "statefulset", "daemonset", "job", "cronjob"}

// behaviorOf is the nth row of the catalogue; where it ends, workloads in ever more policies follow.
func behaviorOf(n int) v1alpha1.Behavior {
	c := v1alpha1.Behavior{File: "suites/cascade/workload.go", Line: 20 + 7*n}
	if n >= len(catalogue) {
		n -= len(catalogue)
		policy := []string{"background", "foreground", "orphan"}[n/len(workloads)%3]
		c.ID = fmt.Sprintf("cascade.workload.%s.%s", workloads[n%len(workloads)], policy)
		c.Statement = fmt.Sprintf("takes what a %s made through its levels by %s", workloads[n%len(workloads)], policy)
		if round := n / len(workloads) / 3; round > 0 {
			c.ID += fmt.Sprintf("-%d", round+1)
			c.Statement += fmt.Sprintf(", %d levels deep", round+1)
		}
		c.Level, c.Needs = v1alpha1.Core, []v1alpha1.Need{v1alpha1.KCM}
		return c
	}
	row := strings.Split(catalogue[n], "|")
	c.ID, c.Statement, c.Level, c.Needs = row[0], row[1], v1alpha1.Level(row[2]), []v1alpha1.Need{}
	for _, need := range strings.Fields(row[3]) {
		c.Needs = append(c.Needs, v1alpha1.Need(need))
	}
	c.File = "suites/" + c.Suite() + "/" + c.ID[strings.LastIndex(c.ID, ".")+1:] + ".go"
	return c
}

func fleetResult(random *rand.Rand, cluster, behavior int) v1alpha1.Result {
	result := v1alpha1.Result{Behavior: behaviorOf(behavior), Outcome: v1alpha1.Passed}
	switch needs := result.Needs; {
	case cluster%5 == 3 && slices.Contains(needs, v1alpha1.Node):
		return skipping(result, v1alpha1.Skipped, "no node is ready")
	case cluster%4 == 1 && slices.Contains(needs, v1alpha1.Admin):
		return skipping(result, v1alpha1.Skipped, `the credentials may not create customresourcedefinitions.apiextensions.k8s.io (user "system:serviceaccount:ci:conformance")`)
	case strings.HasPrefix(result.ID, "kubectl."):
		return skipping(result, v1alpha1.Filtered, "left out by --label-filter '!kubectl'")
	}
	result.Start = Start.Add(time.Duration(behavior) * 400 * time.Millisecond)
	tape := &tape{random: random, at: result.Start, pace: 1 + 3*boolean(cluster%7 == 5)}
	tape.play(result.ID)
	result.Timeline, result.Seconds = tape.Timeline, tape.at.Sub(result.Start).Seconds()
	switch {
	case cluster == 4 && strings.HasPrefix(result.ID, "cascade.foreground.blocking"), random.IntN(300) == 0:
		result.Outcome = v1alpha1.Failed
		return Failing(result)
	case result.Level == v1alpha1.Observed && cluster%3 == 1:
		result.Outcome = v1alpha1.Deviated
		result.Failure = &v1alpha1.Failure{Message: "Expected\n    <[]string | len:1>: [\"foregroundDeletion\"]\nnot to contain element matching\n    <string>: foregroundDeletion", Location: result.File + ":91"}
	case random.IntN(900) == 0:
		result.Outcome, result.Reason = v1alpha1.Errored, "no response from the API server: read tcp 10.0.0.7:51234->10.0.0.1:6443: connection reset by peer"
	}
	return result
}

func skipping(result v1alpha1.Result, outcome v1alpha1.Outcome, reason string) v1alpha1.Result {
	result.Outcome, result.Reason = outcome, reason
	return result
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// tape records what a spec would: requests and events, with the times between them as a real API server has them.
type tape struct {
	v1alpha1.Timeline
	random  *rand.Rand
	at      time.Time
	pace    float64
	version int
}

const playground = "dc-k7d2m-w1"

// wait lets some milliseconds pass, a third more or less.
func (t *tape) wait(ms float64) {
	t.at = t.at.Add(time.Duration(ms * t.pace * (0.67 + 0.66*t.random.Float64()) * float64(time.Millisecond)))
}

func (t *tape) ask(verb string, object v1alpha1.Observation, path, body string, status int) {
	latency := time.Duration((1 + 3*t.random.Float64()*t.pace) * float64(time.Millisecond))
	t.Requests = append(t.Requests, v1alpha1.Request{At: t.at, Object: &object.ObjectReference, Verb: verb, Path: path, Body: body, Status: status, Latency: latency})
	t.at = t.at.Add(latency)
}

func (t *tape) see(event string, o v1alpha1.Observation) {
	t.wait(0.8)
	t.version += 1 + t.random.IntN(4)
	o.At, o.Type, o.ResourceVersion = t.at, event, fmt.Sprint(70_000+t.version)
	t.Events = append(t.Events, o)
}

// thing makes an object: a create request and its ADDED event.
func (t *tape) thing(kind, name string, finalizers []string, owners ...v1alpha1.Observation) v1alpha1.Observation {
	o := v1alpha1.Observation{Finalizers: finalizers, ObjectReference: v1alpha1.ObjectReference{Version: "v1", Kind: kind, Namespace: playground, Name: name, Canary: strings.HasPrefix(name, "canary"), UID: types.UID(fmt.Sprintf(
		"%08x-%04x-4%03x-a%03x-%012x", t.random.Uint32(), t.random.IntN(1<<16), t.random.IntN(1<<12), t.random.IntN(1<<12), t.random.Int64N(1<<48)))}}
	for _, owner := range owners {
		block := true
		o.Owners = append(o.Owners, metav1.OwnerReference{APIVersion: "v1", Kind: owner.Kind, Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block})
	}
	t.ask("POST", o, collection(kind), fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":%q,"finalizers":%q,"labels":{"deletion-conformance.github.io/run":"k7d2m","deletion-conformance.github.io/spec":"s%04d"}},"data":{"purpose":"fixture"}}`, kind, name, playground, finalizers, t.random.IntN(9999)), 201)
	t.see("ADDED", o)
	return o
}

func collection(kind string) string {
	return "/api/v1/namespaces/" + playground + "/" + strings.ToLower(kind) + "s"
}

func (t *tape) delete(o v1alpha1.Observation, options string) {
	t.ask("DELETE", o, collection(o.Kind)+"/"+o.Name, `{"kind":"DeleteOptions","apiVersion":"v1",`+options+`}`, 200)
}

// dying is the object once it terminates.
func (t *tape) dying(o v1alpha1.Observation, grace int64, finalizers ...string) v1alpha1.Observation {
	at := metav1.NewTime(t.at.Add(time.Duration(grace) * time.Second).Truncate(time.Second))
	o.DeletionTimestamp, o.GraceSeconds, o.Finalizers = &at, &grace, finalizers
	return o
}

// play records the story that goes with a behaviour.
func (t *tape) play(id string) {
	switch {
	case strings.Contains(id, "orphan"):
		t.orphan()
	case strings.Contains(id, "foreground"):
		t.foreground()
	case strings.HasPrefix(id, "graceful"):
		t.graceful()
	case strings.HasPrefix(id, "finalizers"):
		t.held()
	default:
		t.background()
	}
}

func (t *tape) background() {
	owner := t.thing("ConfigMap", "owner", nil)
	var children []v1alpha1.Observation
	for _, kind := range []string{"ConfigMap", "Secret", "Service"} {
		children = append(children, t.thing(kind, "child-"+strings.ToLower(kind), nil, owner))
	}
	t.delete(owner, `"propagationPolicy":"Background"`)
	t.see("DELETED", owner)
	t.wait(30)
	for _, child := range children {
		t.wait(4)
		t.see("DELETED", child)
	}
	t.barrier()
}

func (t *tape) foreground() {
	owner := t.thing("ConfigMap", "owner", nil)
	child := t.thing("ConfigMap", "child", []string{framework.Hold}, owner)
	free := t.thing("ConfigMap", "free", nil)
	grandchild := t.thing("ConfigMap", "grandchild", nil, free)
	t.delete(owner, `"propagationPolicy":"Foreground"`)
	t.see("MODIFIED", t.dying(owner, 0, metav1.FinalizerDeleteDependents))
	t.wait(20)
	t.see("MODIFIED", t.dying(child, 0, framework.Hold))
	t.delete(free, `"propagationPolicy":"Foreground"`)
	t.see("MODIFIED", t.dying(free, 0, metav1.FinalizerDeleteDependents))
	t.wait(25)
	t.see("DELETED", grandchild)
	t.wait(15)
	t.see("DELETED", t.dying(free, 0))
	t.ask("GET", owner, collection("ConfigMap")+"/owner", "", 200)
	t.wait(500)
	t.ask("PATCH", child, collection("ConfigMap")+"/child", `[{"op":"remove","path":"/metadata/finalizers/0"}]`, 200)
	t.see("DELETED", t.dying(child, 0))
	t.wait(15)
	t.see("DELETED", t.dying(owner, 0))
}

func (t *tape) orphan() {
	owner := t.thing("ConfigMap", "owner", nil)
	var children []v1alpha1.Observation
	for n := range 4 {
		children = append(children, t.thing("ConfigMap", fmt.Sprintf("child-%d", n), nil, owner))
	}
	t.delete(owner, `"propagationPolicy":"Orphan"`)
	t.see("MODIFIED", t.dying(owner, 0, metav1.FinalizerOrphanDependents))
	t.wait(12)
	for _, child := range children {
		child.Owners = nil
		t.wait(2)
		t.see("MODIFIED", child)
	}
	t.see("DELETED", t.dying(owner, 0))
	t.barrier()
}

func (t *tape) graceful() {
	pod := t.thing("Pod", "bound", nil)
	pod.Phase = "Pending"
	t.delete(pod, `"gracePeriodSeconds":30`)
	t.see("MODIFIED", t.dying(pod, 30))
	t.delete(pod, `"gracePeriodSeconds":5`)
	t.see("MODIFIED", t.dying(pod, 5))
	t.ask("PATCH", pod, collection("Pod")+"/bound", `{"metadata":{"deletionTimestamp":null}}`, 422)
	t.Requests[len(t.Requests)-1].Refusal = `Pod "bound" is invalid: metadata.deletionTimestamp: Invalid value: null: field is immutable`
	t.wait(80)
	t.delete(pod, `"gracePeriodSeconds":0`)
	t.Requests[len(t.Requests)-1].Warnings = []string{"Immediate deletion does not wait for confirmation that the running resource has been terminated."}
	t.see("DELETED", t.dying(pod, 0))
}

func (t *tape) held() {
	object := t.thing("ConfigMap", "held", []string{framework.Hold, "example.com/second"})
	t.delete(object, `"preconditions":{"uid":"`+string(object.UID)+`"}`)
	t.see("MODIFIED", t.dying(object, 0, framework.Hold, "example.com/second"))
	t.wait(10)
	t.ask("PATCH", object, collection("ConfigMap")+"/held", `[{"op":"remove","path":"/metadata/finalizers/1"}]`, 200)
	t.see("MODIFIED", t.dying(object, 0, framework.Hold))
	t.ask("PATCH", object, collection("ConfigMap")+"/held", `[{"op":"remove","path":"/metadata/finalizers/0"}]`, 200)
	t.see("DELETED", t.dying(object, 0))
}

// barrier is a canary: an owner and a dependent made after the act.
func (t *tape) barrier() {
	owner := t.thing("ConfigMap", "canary-owner", nil)
	child := t.thing("ConfigMap", "canary", nil, owner)
	t.delete(owner, `"propagationPolicy":"Background"`)
	t.see("DELETED", owner)
	t.wait(45)
	t.see("DELETED", child)
}
