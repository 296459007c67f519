package workloads

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/model/history"
)

func TestSettled(t *testing.T) {
	settled := func(h *history.History) []history.Violation { return checkQuiet(h.Workloads[:h.Quiet]) }
	expectEach(t, settled, []row{
		// A workload has the pods that it requires.
		{"a ReplicaSet with its pods", "ReplicaSet/a needs 2; Pod/p of a; Pod/q of a", nil},
		{"a ReplicaSet without pods", "ReplicaSet/a needs 0", nil},
		{"a ReplicaSet lacks a pod", "ReplicaSet/a needs 2; Pod/p of a", Replicas},
		{"a ReplicaSet lacks a pod at the quiet moment", "ReplicaSet/a needs 2; Pod/p of a; quiet; Pod/q of a", Replicas},
		{"a ReplicaSet has a pod too many", "ReplicaSet/a needs 1; Pod/p of a; Pod/q of a", Replicas},
		{"a ReplicaSet lost a pod", "ReplicaSet/a needs 1; Pod/p of a; -Pod/p", Replicas},
		{"a finished pod does not count", "ReplicaSet/a needs 1; Pod/p of a finished", Replicas},
		{"a pod of another does not count", "ReplicaSet/a needs 1; ReplicaSet/b needs 0; Pod/p of a; Pod/q of b", Replicas},
		{"a free pod does not count", "ReplicaSet/a needs 1; Pod/p of a; Pod/q", nil},
		{"a terminating ReplicaSet needs no pods", "ReplicaSet/a needs 2 terminating holds a; -ReplicaSet/a", nil},
		{"a new ReplicaSet of the name lacks its pods", "ReplicaSet/a uid old needs 1; Pod/p of old; -ReplicaSet/a; -Pod/p; ReplicaSet/a uid new needs 1", Recreated},
		{"a new ReplicaSet of the name has its pods", "ReplicaSet/a uid old needs 1; -ReplicaSet/a; ReplicaSet/a uid new needs 1; Pod/p of new", nil},
		{"a new ReplicaSet of another name lacks its pods", "ReplicaSet/a needs 1; -ReplicaSet/a; ReplicaSet/b needs 1", Replicas},
		{"a ReplicationController lacks a pod", "ReplicationController/a needs 1", Replicas},
		{"a DaemonSet lacks a pod", "DaemonSet/a needs 1", Replicas},
		{"a Job lacks a pod", "Job/a needs 2; Pod/p of a holds batch.kubernetes.io/job-tracking", Replicas},
		{"a Job with its pods", "Job/a needs 1; Pod/p of a holds batch.kubernetes.io/job-tracking; Pod/q of a finished", nil},
		{"a finished Job keeps a pod", "Job/a finished; Pod/p of a", Replicas},
		{"a StatefulSet with its pods", "StatefulSet/a needs 2; Pod/a-0 of a; Pod/a-1 of a", nil},
		{"a StatefulSet lacks an ordinal", "StatefulSet/a needs 2; Pod/a-0 of a; Pod/a-2 of a", Replicas},
		{"a StatefulSet has an ordinal too many", "StatefulSet/a needs 1; Pod/a-0 of a; Pod/a-1 of a", Replicas},
		{"a StatefulSet has a finished pod", "StatefulSet/a needs 1; Pod/a-0 of a finished", Replicas},
		{"a StatefulSet whose name another pod has", "StatefulSet/a needs 1; Pod/a-0", nil},
		{"a Deployment with its pods", "Deployment/a needs 1 template 2; ReplicaSet/r of a needs 1 template 2; Pod/p of r; ReplicaSet/s of a needs 0 template 1", nil},
		{"a Deployment lacks a ReplicaSet", "Deployment/a needs 1 template 2", Replicas},
		{"a Deployment requires more than its ReplicaSet", "Deployment/a needs 2 template 2; ReplicaSet/r of a needs 1 template 2; Pod/p of r", Replicas},

		// Its pods have the current template.
		{"a Deployment with an old ReplicaSet", "Deployment/a needs 0 template 2; ReplicaSet/r of a needs 1 template 1; Pod/p of r", Rollout},
		{"a StatefulSet with an old pod", "StatefulSet/a needs 1 template 2; Pod/a-0 of a template 1", Rollout},
		{"a DaemonSet with an old pod", "DaemonSet/a needs 1 template 2; Pod/p of a template 1", Rollout},
		{"a ReplicaSet with an old pod", "ReplicaSet/a needs 1 template 2; Pod/p of a template 1", nil},

		// What has no owner goes.
		{"a pod without its owner", "ReplicaSet/a needs 1; Pod/p of a; -ReplicaSet/a", Collected},
		{"a ReplicaSet without its owner", "Deployment/a; ReplicaSet/r of a; -Deployment/a", Collected},
		{"a pod with the owner of another uid", "ReplicaSet/a uid old; Pod/p of old; -ReplicaSet/a; ReplicaSet/a uid new", Collected},
		{"an orphan", "ReplicaSet/a needs 1; Pod/p of a; Pod/p of nothing; -ReplicaSet/a", nil},

		// Deletions end.
		{"a pod in deletion", "Pod/p terminating", Completed},
		{"a workload in foreground deletion", "ReplicaSet/a terminating holds foregroundDeletion", Completed},
		{"a claim in deletion that a pod uses", "StatefulSet/a needs 1; Pod/a-0 of a; PersistentVolumeClaim/data-a-0 terminating holds kubernetes.io/pvc-protection", nil},
		{"a claim in deletion that the pod of a new StatefulSet uses", "StatefulSet/a uid old; PersistentVolumeClaim/data-a-0 of old holds kubernetes.io/pvc-protection; -StatefulSet/a; StatefulSet/a uid new needs 1; Pod/a-0 of new; PersistentVolumeClaim/data-a-0 terminating", nil},
		{"a pod in deletion without its owner", "ReplicaSet/a; Pod/p of a; -ReplicaSet/a; Pod/p terminating", Completed},
		{"an owner that waits for a claim which a pod uses", "StatefulSet/a; PersistentVolumeClaim/data-a-0 of a holds kubernetes.io/pvc-protection; Pod/a-0; PersistentVolumeClaim/data-a-0 terminating; StatefulSet/a terminating holds foregroundDeletion", nil},
		{"an owner that waits for a claim which goes", "StatefulSet/a; PersistentVolumeClaim/data-b-0 of a; StatefulSet/a terminating holds foregroundDeletion; -PersistentVolumeClaim/data-b-0", Completed},
		{"an owner that waits for nothing, while a pod uses the claim of another", "StatefulSet/a; StatefulSet/b; PersistentVolumeClaim/data-b-0 of b; Pod/b-0; PersistentVolumeClaim/data-b-0 terminating; StatefulSet/b terminating holds b; StatefulSet/a terminating holds foregroundDeletion", Completed},
		{"a claim in deletion that no pod uses", "PersistentVolumeClaim/data-a-0 terminating holds kubernetes.io/pvc-protection", Completed},

		// Pods are tracked for a Job only.
		{"an orphan that is tracked", "Job/a needs 0; Pod/p of a holds batch.kubernetes.io/job-tracking; Pod/p of nothing; -Job/a", Tracked},
		{"a finished pod that is tracked", "Job/a needs 0; Pod/p of a finished holds batch.kubernetes.io/job-tracking", Tracked},
		{"a tracked pod of something else", "ReplicaSet/a needs 1; Pod/p of a holds batch.kubernetes.io/job-tracking", Tracked},

		// EndpointSlices show what serves.
		{"a Service with its pods", "Service/s group g; Pod/p group g ready; EndpointSlice/e of s group s shows p", nil},
		{"a Service without pods", "Service/s group g; Pod/p group g; Pod/q group h ready; EndpointSlice/e of s group s", nil},
		{"a Service with two slices", "Service/s group g; Pod/p group g ready; Pod/q group g ready; EndpointSlice/e group s shows p; EndpointSlice/f group s shows q", nil},
		{"a ready pod is missing", "Service/s group g; Pod/p group g ready; EndpointSlice/e of s group s", Endpoints},
		{"a pod that is gone is shown", "Service/s group g; Pod/p group g ready; EndpointSlice/e of s group s shows p; -Pod/p", Endpoints},
		{"a pod that has left is shown", "Service/s group g; EndpointSlice/e of s group s shows p; Pod/p group h ready", Endpoints},
		{"a finished pod is shown", "Service/s group g; Pod/p group g finished; EndpointSlice/e of s group s shows p", Endpoints},
		{"a new Service of the name", "Service/s uid old group g; -Service/s; Service/s uid new group g; Pod/p group g ready", Recreated},
		// A budget allows what its ready pods permit.
		{"a budget without pods", "PodDisruptionBudget/b group g needs 1", nil},
		{"a budget with its pods", "PodDisruptionBudget/b group g needs 1 allows 1; Pod/p group g ready; Pod/q group g ready; Pod/r group h ready", nil},
		{"a budget with fewer pods than it needs", "PodDisruptionBudget/b group g needs 3; Pod/p group g ready", nil},
		{"a budget allows too much", "PodDisruptionBudget/b group g needs 1 allows 1; Pod/p group g ready", Budgets},
		{"a budget allows too little", "PodDisruptionBudget/b group g needs 1; Pod/p group g ready; Pod/q group g ready", Budgets},
		{"a budget that needs none", "PodDisruptionBudget/b group g needs 0 allows 1; Pod/p group g ready", nil},
		{"a pod that is gone", "PodDisruptionBudget/b group g needs 0 allows 1; Pod/p group g ready; -Pod/p", Budgets},
		{"a pod that is not ready", "PodDisruptionBudget/b group g needs 0 allows 1; Pod/p group g", Budgets},
		{"a pod whose eviction was counted", "PodDisruptionBudget/b group g needs 0 counts p; Pod/p group g ready", nil},
		{"a pod whose eviction was counted is allowed", "PodDisruptionBudget/b group g needs 0 counts p allows 1; Pod/p group g ready", Budgets},
		{"a new budget of the name", "PodDisruptionBudget/b uid old group g; -PodDisruptionBudget/b; PodDisruptionBudget/b uid new group g needs 0; Pod/p group g ready", Budgets},

		// Nothing is left of a namespace.
		{"a namespace that nobody deletes", "Namespace/n; ReplicaSet/a needs 1; Pod/p of a", nil},
		{"a namespace that nobody deletes lacks a pod", "Namespace/n; ReplicaSet/a needs 1", Replicas},
		{"a namespace with its content is gone", "Namespace/n; ReplicaSet/a needs 1; Namespace/n terminating; -ReplicaSet/a; -Namespace/n", nil},
		{"a namespace is left", "Namespace/n; ReplicaSet/a needs 1; Namespace/n terminating; -ReplicaSet/a", Completed},
		{"something is left in a namespace", "Namespace/n; ReplicaSet/a needs 1; Namespace/n terminating", Emptied},
		{"something is left after a namespace", "Namespace/n; ReplicaSet/a needs 0; Namespace/n terminating; -Namespace/n", Emptied},
		{"something terminating is left in a namespace", "Namespace/n; Pod/p; Namespace/n terminating; Pod/p terminating", Emptied},
		{"a slice of another Service", "Service/s group g; Pod/p group g ready; EndpointSlice/e group t shows p", Endpoints},
	})
}
