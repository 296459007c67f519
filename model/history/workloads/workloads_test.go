package workloads

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
)

func TestCheck(t *testing.T) {
	expectEach(t, Check, []row{
		// A pod on a node goes when its termination is confirmed.
		{"a pod is confirmed", "Pod/p node n; delete Pod/p; Pod/p terminating; delete Pod/p grace 0; -Pod/p", nil},
		{"a pod may be confirmed", "Pod/p node n; delete Pod/p; Pod/p terminating; delete Pod/p grace 0 lost; -Pod/p", nil},
		{"a pod is removed by force", "Pod/p node n; delete Pod/p; Pod/p terminating; -Pod/p", Confirmed},
		{"a pod is removed by force, after a refusal", "Pod/p node n; delete Pod/p; Pod/p terminating; delete Pod/p grace 0 refused; -Pod/p", Confirmed},
		{"a pod is removed before it is confirmed", "Pod/p node n; delete Pod/p; Pod/p terminating; -Pod/p; delete Pod/p grace 0", Confirmed},
		{"another pod of the name is confirmed", "Pod/p node n; delete Pod/p; Pod/p terminating; delete Pod/p grace 0 uid q; -Pod/p", Confirmed},
		{"a pod without a node", "Pod/p; delete Pod/p; -Pod/p", nil},
		{"a finished pod", "Pod/p node n finished; delete Pod/p; -Pod/p", nil},
		{"the pod garbage collector", "unsupervised; Pod/p node n at 1; -Pod/p at 31", nil},
		{"too early for the pod garbage collector", "unsupervised; Pod/p node n at 1; delete Pod/p; -Pod/p at 20", Confirmed},

		// A pod is deleted for a cause.
		{"a client deletes a pod", "Pod/p; delete Pod/p; -Pod/p", nil},
		{"a client may delete a pod", "Pod/p; delete Pod/p lost; -Pod/p", nil},
		{"a client is refused", "Pod/p; delete Pod/p refused; -Pod/p", Kept},
		{"a client deletes a pod later", "Pod/p; -Pod/p; delete Pod/p", Kept},
		{"no client deletes a free pod", "Pod/p; -Pod/p", Kept},
		{"a pod whose workload is gone", "ReplicaSet/a needs 1; Pod/p of a; delete ReplicaSet/a; -ReplicaSet/a; -Pod/p", nil},
		{"a pod whose workload waits for it", "ReplicaSet/a needs 1; Pod/p of a; delete ReplicaSet/a Foreground; ReplicaSet/a terminating holds foregroundDeletion; -Pod/p; -ReplicaSet/a", nil},
		{"a pod whose workload is held", "ReplicaSet/a needs 1; Pod/p of a; delete ReplicaSet/a; ReplicaSet/a terminating holds a; -Pod/p; -ReplicaSet/a released", Kept},
		{"an orphan", "ReplicaSet/a needs 1; Pod/p of a; Pod/p of nothing; delete ReplicaSet/a Orphan; -ReplicaSet/a; -Pod/p", Kept},
		{"an orphan of two deletes", "ReplicaSet/a needs 1; Pod/p of a; delete ReplicaSet/a; delete ReplicaSet/a Orphan; -ReplicaSet/a; Pod/p of nothing; -Pod/p", nil},
		{"an orphan of two deletes, one of which was refused", "ReplicaSet/a needs 1; Pod/p of a; delete ReplicaSet/a refused; delete ReplicaSet/a Orphan; -ReplicaSet/a; Pod/p of nothing; -Pod/p", Kept},
		{"an orphan that another workload has adopted", "ReplicaSet/a needs 1; StatefulSet/b needs 1; Pod/b-0 of a; delete ReplicaSet/a; delete ReplicaSet/a Orphan; -ReplicaSet/a; Pod/b-0 of b; -Pod/b-0; Pod/b-0 uid c of b", Kept},
		{"an orphan before its owner is gone", "ReplicaSet/a needs 1; Pod/p of a; delete ReplicaSet/a; delete ReplicaSet/a Orphan; Pod/p of nothing; -Pod/p; -ReplicaSet/a", Kept},
		{"a pod of a ReplicaSet", "ReplicaSet/a needs 1; Pod/p of a; -Pod/p; Pod/q of a", Kept},
		{"a finished pod of a ReplicaSet", "ReplicaSet/a needs 1; Pod/p of a finished; -Pod/p; Pod/q of a", nil},
		{"a ReplicaSet is scaled", "ReplicaSet/a needs 2; Pod/p of a; Pod/q of a; ReplicaSet/a needs 1; -Pod/p", nil},
		{"a ReplicaSet is scaled back at once", "ReplicaSet/a needs 2; Pod/p of a; Pod/q of a; ReplicaSet/a needs 1; ReplicaSet/a needs 2; -Pod/p; Pod/r of a", nil},
		{"a ReplicaSet is scaled by less", "ReplicaSet/a needs 2; Pod/p of a; Pod/q of a; ReplicaSet/a needs 1; -Pod/p; -Pod/q; Pod/r of a", Kept},
		{"a ReplicaSet is scaled later", "ReplicaSet/a needs 1; Pod/p of a; -Pod/p; ReplicaSet/a needs 0", Kept},
		{"a ReplicaSet is scaled up", "ReplicaSet/a needs 1; Pod/p of a; ReplicaSet/a needs 2; -Pod/p; Pod/q of a; Pod/r of a", Kept},
		{"a ReplicaSet has adopted a pod", "ReplicaSet/a needs 1; Pod/p of a; Pod/q; Pod/q of a; -Pod/p", nil},
		{"a ReplicaSet has released the pod", "ReplicaSet/a needs 1; Pod/p of a; ReplicaSet/a needs 0; Pod/p of nothing; -Pod/p", nil},
		{"a StatefulSet is scaled", "StatefulSet/a needs 2; Pod/a-0 of a; Pod/a-1 of a; StatefulSet/a needs 1; -Pod/a-1", nil},
		{"a StatefulSet deletes another ordinal", "StatefulSet/a needs 2; Pod/a-0 of a; Pod/a-1 of a; StatefulSet/a needs 1; -Pod/a-0; -Pod/a-1; Pod/a-0 uid b of a", Kept},
		{"a StatefulSet has a new template", "StatefulSet/a needs 1 template 1; Pod/a-0 of a template 1; StatefulSet/a template 2; -Pod/a-0; Pod/a-0 uid b of a template 2", nil},
		{"a StatefulSet has the same template", "StatefulSet/a needs 1 template 1; Pod/a-0 of a template 1; -Pod/a-0; Pod/a-0 uid b of a template 1", Kept},
		{"a DaemonSet has a new template", "DaemonSet/a needs 1 template 1; Pod/p of a template 1; DaemonSet/a template 2; -Pod/p; Pod/q of a template 2", nil},
		{"a DaemonSet has the same template", "DaemonSet/a needs 1 template 1; Pod/p of a template 1; -Pod/p; Pod/q of a template 1", Kept},
		{"a Job has ended", "Job/a needs 2; Pod/p of a; Pod/q of a; Pod/q failed; -Pod/p; Job/a needs 0 finished", nil},
		{"a Job whose other pod has succeeded", "Job/a needs 2; Pod/p of a; Pod/q of a; Pod/q finished; -Pod/p; Pod/r of a; Pod/s of a", Kept},
		{"a Job whose other pod was deleted", "Job/a needs 2; Pod/p of a; Pod/q of a; delete Pod/q; Pod/q terminating; -Pod/p; -Pod/q; Job/a needs 0 finished", nil},
		{"a Job has not ended", "Job/a needs 1; Pod/p of a; -Pod/p; Pod/q of a", Kept},
		{"a Job requires fewer pods", "Job/a needs 1; Pod/p of a; Job/a needs 0; -Pod/p", nil},

		// Other objects go with their owners.
		{"a ReplicaSet whose Deployment is gone", "Deployment/a; ReplicaSet/r of a; delete Deployment/a; -Deployment/a; -ReplicaSet/r", nil},
		{"a ReplicaSet whose Deployment exists", "Deployment/a; ReplicaSet/r of a needs 1; -ReplicaSet/r", DependentsKept},
		{"an orphaned ReplicaSet", "Deployment/a; ReplicaSet/r of a needs 1; delete Deployment/a Orphan; -Deployment/a; ReplicaSet/r of nothing; -ReplicaSet/r", DependentsKept},
		{"a ReplicaSet that one of two deletes has orphaned", "Deployment/a; ReplicaSet/r of a needs 1; delete Deployment/a; delete Deployment/a Orphan; -Deployment/a; ReplicaSet/r of nothing; -ReplicaSet/r", nil},
		{"an old ReplicaSet whose Deployment exists", "Deployment/a; ReplicaSet/r of a needs 0; -ReplicaSet/r", nil},
		{"a ReplicaSet that a client deletes", "Deployment/a; ReplicaSet/r of a needs 1; delete ReplicaSet/r; -ReplicaSet/r", nil},
		{"an EndpointSlice whose Service exists", "Service/s group g; EndpointSlice/e of s group s; -EndpointSlice/e", nil},
		{"a workload that no client deletes", "ReplicaSet/a; -ReplicaSet/a", DependentsKept},
		{"a claim without an owner", "PersistentVolumeClaim/c; -PersistentVolumeClaim/c", ClaimsKept},
		{"a claim whose pod exists", "Pod/p; PersistentVolumeClaim/c of p; -PersistentVolumeClaim/c", ClaimsKept},
		{"a claim whose pod is gone", "Pod/p; PersistentVolumeClaim/c of p; delete Pod/p; -Pod/p; -PersistentVolumeClaim/c", nil},
		{"a claim that has just got another owner", "StatefulSet/a group g; Pod/p; PersistentVolumeClaim/c of a group g; delete StatefulSet/a; -StatefulSet/a; PersistentVolumeClaim/c of p group g; -PersistentVolumeClaim/c", ownership.Latest},
		{"a claim that has had another owner for a while", "StatefulSet/a group g; Pod/p; PersistentVolumeClaim/c of a group g; delete StatefulSet/a; -StatefulSet/a; PersistentVolumeClaim/c of p group g; -PersistentVolumeClaim/c at 9", ClaimsKept},
		{"a retained claim that has just got another owner", "StatefulSet/a group g retains; Pod/p; PersistentVolumeClaim/c of a group g; delete StatefulSet/a; -StatefulSet/a; PersistentVolumeClaim/c of p group g; -PersistentVolumeClaim/c", ClaimsKept},
		{"a ReplicaSet that has just got another owner", "Deployment/a; Deployment/b; ReplicaSet/r of a needs 1; delete Deployment/a; -Deployment/a; ReplicaSet/r of b needs 1; -ReplicaSet/r", ownership.Latest},

		{"a claim that is retained", "StatefulSet/a group g retains; PersistentVolumeClaim/c of a group g; delete StatefulSet/a; -StatefulSet/a; -PersistentVolumeClaim/c", ClaimsKept},
		{"a claim that is not retained", "StatefulSet/a group g; PersistentVolumeClaim/c of a group g; delete StatefulSet/a; -StatefulSet/a; -PersistentVolumeClaim/c", nil},
		{"a claim that another retains", "StatefulSet/b group h retains; StatefulSet/a group g; PersistentVolumeClaim/c of a group g; delete StatefulSet/a; -StatefulSet/a; -PersistentVolumeClaim/c", nil},
		{"a claim that is retained, and that a client deletes", "StatefulSet/a group g retains; PersistentVolumeClaim/c group g; delete PersistentVolumeClaim/c; -PersistentVolumeClaim/c", nil},

		// An owner waits for its dependents.
		{"an owner in foreground deletion waits", "ReplicaSet/a needs 1; Pod/p of a; ReplicaSet/a at 9; delete ReplicaSet/a Foreground; ReplicaSet/a terminating holds foregroundDeletion; -Pod/p; -ReplicaSet/a", nil},
		{"an owner in foreground deletion does not wait", "Pod/p of a; ReplicaSet/a; ReplicaSet/a needs 1; delete ReplicaSet/a Foreground; ReplicaSet/a terminating holds foregroundDeletion; -ReplicaSet/a; -Pod/p", Blocked},
		{"an owner does not wait for what it has just created", "ReplicaSet/a needs 1; delete ReplicaSet/a Foreground; Pod/p of a; ReplicaSet/a at 3 terminating holds foregroundDeletion; -ReplicaSet/a; -Pod/p", nil},
		{"an owner does not wait, as another policy overrules", "Pod/p of a; ReplicaSet/a; ReplicaSet/a needs 1; delete ReplicaSet/a Foreground; ReplicaSet/a terminating holds foregroundDeletion; delete ReplicaSet/a Background; -ReplicaSet/a; -Pod/p", nil},
		{"an owner orphans", "Pod/p of a; ReplicaSet/a; ReplicaSet/a needs 1; delete ReplicaSet/a Orphan; ReplicaSet/a terminating holds orphan; Pod/p of nothing; -ReplicaSet/a", nil},
		{"an owner does not orphan", "Pod/p of a; ReplicaSet/a; ReplicaSet/a needs 1; delete ReplicaSet/a Orphan; ReplicaSet/a terminating holds orphan; -ReplicaSet/a; -Pod/p", Orphaned},

		{"an owner orphans, and another controller restores the reference", "Service/s; EndpointSlice/e of s; Service/s needs 1; delete Service/s Orphan; Service/s terminating holds orphan; EndpointSlice/e of nothing; EndpointSlice/e of s; -Service/s; -EndpointSlice/e", nil},
		{"a rollout stops", "Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s", Rollout},
		{"a rollout stops at an injected fault", "Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s; fault refuse UPDATE replicasets/r", Retried},
		{"a rollout stops, and an injected fault met another ReplicaSet", "Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s; ReplicaSet/t needs 0; fault refuse UPDATE replicasets/t", Rollout},
		{"a rollout stops, and an injected fault met its pod", "Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s; fault refuse UPDATE pods/r", Rollout},
		{"a rollout stops, and the create of a ReplicaSet was refused", "Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s; fault refuse CREATE replicasets/r", Rollout},
		{"a rollout stops, and an update of a status was refused", "Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s; fault refuse UPDATE replicasets/status/r", Rollout},
		{"a rollout stops, and an update was delayed", "Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s; fault delay UPDATE replicasets/r", Rollout},
		{"a rollout stops after an earlier one met an injected fault", "Deployment/a needs 1 template 1; fault refuse UPDATE replicasets/r; ReplicaSet/r of a needs 1 template 1; Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s", Rollout},
		{"a rollout stops after one of the same template met an injected fault", "Deployment/a needs 1 template 2; fault refuse UPDATE replicasets/r; ReplicaSet/r of a needs 1 template 1; Deployment/a template 1; Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 1; ReplicaSet/s of a needs 1 template 2; Pod/p of r; Pod/q of s", Rollout},
		{"a rollout stops at an injected fault before it is complete", "Deployment/a needs 2 template 2; fault refuse UPDATE replicasets/r; ReplicaSet/r of a needs 1 template 2; Pod/p of r", Retried},
		{"a ReplicaSet lacks a pod, and an injected fault met it", "ReplicaSet/r needs 1; fault refuse UPDATE replicasets/r", Replicas},
		{"a pod that came and went after a restart is not replaced", "interrupted; ReplicaSet/r needs 1; Pod/p of r; delete Pod/p; -Pod/p", nil},
		{"a pod of a Deployment that came and went after a restart is not replaced", "interrupted; Deployment/a needs 1 template 1; ReplicaSet/r of a needs 1 template 1; Pod/p of r; delete Pod/p; -Pod/p", nil},
		{"a pod that came and went is not replaced", "ReplicaSet/r needs 1; Pod/p of r; delete Pod/p; -Pod/p", Replicas},
		{"a pod is missing after a restart", "interrupted; ReplicaSet/r needs 1; ReplicaSet/s needs 1; Pod/p of s; ReplicaSet/s needs 0; delete Pod/p; -Pod/p", Replicas},
		{"a ready pod is missing after a restart", "interrupted; Service/s group g; Pod/p group g ready; EndpointSlice/e of s group s", nil},
		{"a ready pod is missing without a restart", "Service/s group g; Pod/p group g ready; EndpointSlice/e of s group s", Endpoints},
		{"a new owner has the name after a restart", "interrupted; ReplicaSet/a uid old needs 1; Pod/p of old; delete ReplicaSet/a uid old; -ReplicaSet/a; ReplicaSet/a uid new", ownership.Recreated},
		{"a new owner has the name", "ReplicaSet/a uid old needs 1; Pod/p of old; delete ReplicaSet/a uid old; -ReplicaSet/a; ReplicaSet/a uid new", Collected},
		{"the owner is gone after a restart", "interrupted; ReplicaSet/a needs 1; Pod/p of a; delete ReplicaSet/a; -ReplicaSet/a", Collected},
		{"a new pod has the name of a dependent that is not orphaned after a restart", "interrupted; ReplicaSet/a needs 1; Pod/p uid old of a; delete Pod/p uid old; -Pod/p; Pod/p uid new of nothing; delete ReplicaSet/a Orphan; ReplicaSet/a terminating holds orphan", ownership.Recreated},
		{"a pod is not orphaned after a restart", "interrupted; ReplicaSet/a needs 1; Pod/p of a; delete ReplicaSet/a Orphan; ReplicaSet/a terminating holds orphan", Completed},
		{"an owner does not orphan after a restart", "interrupted; Pod/p of a; ReplicaSet/a; ReplicaSet/a needs 1; delete ReplicaSet/a Orphan; ReplicaSet/a at 59 terminating holds orphan; -ReplicaSet/a; -Pod/p", nil},
		{"an owner does not orphan long after a restart", "interrupted; Pod/p of a; ReplicaSet/a; ReplicaSet/a needs 1; delete ReplicaSet/a Orphan; ReplicaSet/a at 90 terminating holds orphan; -ReplicaSet/a; -Pod/p", Orphaned},
		{"an owner that waited has orphaned", "Deployment/d; ReplicaSet/a of d needs 1; Deployment/e; ReplicaSet/b of e; delete Deployment/d Foreground; Deployment/d terminating holds foregroundDeletion; delete Deployment/d Orphan; Deployment/d holds orphan; ReplicaSet/a of nothing; -ReplicaSet/a; -Deployment/d", nil},
		{"an owner that waited has orphaned a pod", "DaemonSet/d; Pod/p of d; delete DaemonSet/d Foreground; DaemonSet/d terminating holds foregroundDeletion; delete DaemonSet/d Orphan; DaemonSet/d holds orphan; Pod/p of nothing; -Pod/p; -DaemonSet/d", nil},
		{"an owner that waited orphans", "Deployment/d; ReplicaSet/a of d needs 1; delete Deployment/d Foreground; Deployment/d terminating holds foregroundDeletion; delete Deployment/d Orphan; Deployment/d holds orphan; -ReplicaSet/a; -Deployment/d", nil},

		// An eviction takes one of the disruptions that a budget allows.
		{"an eviction is counted", "PodDisruptionBudget/b group g allows 1; Pod/p group g ready; evict Pod/p; PodDisruptionBudget/b allows 0 counts p; -Pod/p", nil},
		{"an eviction is not counted", "PodDisruptionBudget/b group g allows 1; Pod/p group g ready; evict Pod/p; -Pod/p; PodDisruptionBudget/b allows 0", Evictions},
		{"an eviction is counted too late", "PodDisruptionBudget/b group g allows 1; Pod/p group g ready; evict Pod/p; -Pod/p; PodDisruptionBudget/b allows 0 counts p", Evictions},
		{"an eviction whose response is lost is not counted", "PodDisruptionBudget/b group g allows 1; Pod/p group g ready; evict Pod/p lost; -Pod/p; PodDisruptionBudget/b allows 0", Evictions},
		{"an eviction is refused", "PodDisruptionBudget/b group g; Pod/p group g ready; evict Pod/p refused; -Pod/p", Kept},
		{"the eviction of a pod that is not ready", "PodDisruptionBudget/b group g; Pod/p group g ready; Pod/p unready; evict Pod/p; -Pod/p", nil},
		{"the eviction of a pod that has ended", "PodDisruptionBudget/b group g; Pod/p group g ready; Pod/p finished; evict Pod/p; -Pod/p", nil},
		{"the eviction of a pod that is terminating", "PodDisruptionBudget/b group g; Pod/p group g ready; delete Pod/p; Pod/p terminating; evict Pod/p; -Pod/p", nil},
		{"the eviction of a pod that a client also deletes", "PodDisruptionBudget/b group g; Pod/p group g ready; evict Pod/p; delete Pod/p; -Pod/p", nil},
		{"the eviction of a pod that its workload may delete", "PodDisruptionBudget/b group g; ReplicaSet/a needs 1; Pod/p of a group g ready; evict Pod/p; ReplicaSet/a needs 0; -Pod/p", nil},
		{"the eviction of a pod of a workload", "PodDisruptionBudget/b group g; ReplicaSet/a needs 1; Pod/p of a group g ready; Pod/p at 8; evict Pod/p; -Pod/p; Pod/r of a", Evictions},
		{"the eviction of a pod whose workload has deleted as many as it may", "PodDisruptionBudget/b group g; ReplicaSet/a needs 2; Pod/p of a group g ready; Pod/q of a; Pod/p at 8; ReplicaSet/a needs 1; -Pod/q; evict Pod/p; -Pod/p; Pod/r of a", Evictions},
		{"the eviction of a pod whose workload is gone", "PodDisruptionBudget/b group g; ReplicaSet/a needs 1; Pod/p of a group g ready; evict Pod/p; delete ReplicaSet/a; -ReplicaSet/a; -Pod/p", nil},
		{"another budget counts", "PodDisruptionBudget/b group g; PodDisruptionBudget/c group h; Pod/p group g ready; evict Pod/p; PodDisruptionBudget/b counts p; -Pod/p", Evictions},
		{"a budget of other pods", "PodDisruptionBudget/b group h; Pod/p group g ready; evict Pod/p; -Pod/p", nil},
		{"a budget that is created after the eviction", "Pod/p group g ready; Pod/p at 5; evict Pod/p; PodDisruptionBudget/b group g; -Pod/p", nil},
		{"a budget that is gone", "PodDisruptionBudget/b group g; Pod/p group g ready; delete PodDisruptionBudget/b; -PodDisruptionBudget/b; evict Pod/p; -Pod/p", nil},
		{"a pod that leaves the budget", "PodDisruptionBudget/b group g; Pod/p group g ready; evict Pod/p; Pod/p group h; -Pod/p", nil},
		{"a pod that has joined the budget", "PodDisruptionBudget/b group g; Pod/p group h ready; Pod/p group g; evict Pod/p; -Pod/p", Evictions},
		{"two evictions are counted", "PodDisruptionBudget/b group g allows 2; Pod/p group g ready; Pod/q group g ready; evict Pod/p; evict Pod/q; PodDisruptionBudget/b allows 1 counts p; PodDisruptionBudget/b allows 0 counts p,q; -Pod/p; -Pod/q", nil},
		{"two evictions take one disruption", "PodDisruptionBudget/b group g allows 1; Pod/p group g ready; Pod/q group g ready; evict Pod/p; evict Pod/q; PodDisruptionBudget/b allows 0 counts p; PodDisruptionBudget/b allows 0 counts p,q; -Pod/p; -Pod/q", Evictions},
		{"two evictions are counted at once", "PodDisruptionBudget/b group g allows 2; Pod/p group g ready; Pod/q group g ready; evict Pod/p; evict Pod/q; PodDisruptionBudget/b allows 1 counts p,q; -Pod/p; -Pod/q; PodDisruptionBudget/b allows 0", Evictions},
		{"a counted eviction takes no disruption", "PodDisruptionBudget/b group g allows 1; Pod/p group g ready; evict Pod/p; PodDisruptionBudget/b allows 1 counts p; -Pod/p; PodDisruptionBudget/b allows 0", Evictions},
		{"the deletion of a counted pod is seen", "PodDisruptionBudget/b group g allows 1; Pod/p group g ready; evict Pod/p; PodDisruptionBudget/b allows 0 counts p; -Pod/p; PodDisruptionBudget/b counts nobody", nil},

		// The deletion of a namespace is a cause.
		{"a namespace is deleted", "Namespace/n; ReplicaSet/a needs 1; Pod/p of a; delete Namespace/n; Namespace/n terminating; -Pod/p; -ReplicaSet/a; -Namespace/n", nil},
		{"the deletion of a namespace is lost", "Namespace/n; ReplicaSet/a needs 1; Pod/p of a; delete Namespace/n lost; Namespace/n terminating; -Pod/p; -ReplicaSet/a; -Namespace/n", nil},
		{"the deletion of a namespace is refused", "Namespace/n; ReplicaSet/a needs 1; Pod/p of a; delete Namespace/n refused; -Pod/p; Pod/q of a", Kept},
		{"a namespace is deleted later", "Namespace/n; ReplicaSet/a needs 1; Pod/p of a; -Pod/p; delete Namespace/n; Namespace/n terminating; -ReplicaSet/a; -Namespace/n", Kept},
		{"a pod in a namespace is removed by force", "Namespace/n; Pod/p node n; delete Namespace/n; Namespace/n terminating; -Pod/p; -Namespace/n", Confirmed},
		{"a pod in a namespace is confirmed", "Namespace/n; Pod/p node n; delete Namespace/n; Namespace/n terminating; Pod/p terminating; delete Pod/p grace 0; -Pod/p; -Namespace/n", nil},
		{"an eviction in a namespace that is deleted", "Namespace/n; PodDisruptionBudget/b group g; Pod/p group g ready; evict Pod/p; delete Namespace/n; Namespace/n terminating; -Pod/p; -PodDisruptionBudget/b; -Namespace/n", nil},

		// A workload creates no more pods than it requires.
		{"a pod replaces another", "ReplicaSet/a needs 1; Pod/p of a; delete Pod/p; Pod/p terminating; Pod/q of a; -Pod/p", nil},
		{"a pod too many", "ReplicaSet/a needs 1; Pod/p of a; Pod/q of a; delete Pod/q; -Pod/q", Surplus},
		{"a pod too many of a Job", "Job/a needs 1; Pod/p of a; Pod/q of a; delete Pod/q; -Pod/q", Surplus},
		{"as many as it has required", "ReplicaSet/a needs 2; ReplicaSet/a needs 1; Pod/p of a; Pod/q of a; -Pod/q", nil},
		{"an adopted pod", "ReplicaSet/a needs 1; Pod/p of a; Pod/q; Pod/q of a; -Pod/q", nil},
		{"a pod that comes back", "ReplicaSet/a needs 1; Pod/p of a; Pod/p of nothing; Pod/q of a; Pod/p of a; -Pod/q", nil},
	})
}

func TestCheck_WithoutOrder(t *testing.T) {
	g, h := NewWithT(t), historyOf(t, "ReplicaSet/a needs 1; Pod/p of a; -Pod/p; Pod/q of a")
	g.Expect(Check(h)).NotTo(BeEmpty())
	h.Workloads[1].Object.ResourceVersion = "x"
	g.Expect(Check(h)).To(BeEmpty())
}

func TestDelayed(t *testing.T) {
	for clauses, expected := range map[string]bool{
		"ReplicaSet/a needs 0": false,
		"ReplicaSet/a needs 1": false,
		"ReplicaSet/a uid old; -ReplicaSet/a; ReplicaSet/a uid new needs 1":                       true,
		"ReplicaSet/a uid old; -ReplicaSet/a; ReplicaSet/a uid new needs 1; ReplicaSet/b needs 1": false,
	} {
		NewWithT(t).Expect(Delayed(historyOf(t, clauses).Workloads)).To(Equal(expected), clauses)
	}
}
