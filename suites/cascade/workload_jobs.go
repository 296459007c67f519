package cascade

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Jobs", func() {
	cluster := UseCluster()

	// start creates a Job and waits for its two pods.
	start := func(ctx SpecContext, name string, options ...ObjectOption) (job *Object, pods []*Object) {
		GinkgoHelper()
		cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
		job = cluster.Create(ctx, fixtures.Job(name), options...)
		return job, cluster.AwaitDependents(ctx, job, 2)
	}
	// counts waits until the Job's status matches.
	counts := func(ctx SpecContext, job *Object, matchers ...OmegaMatcher) {
		GinkgoHelper()
		Eventually(ctx, cluster.History(job)).Should(HaveObserved(Matching(job, And(matchers...))))
	}

	Specify("A Job must count a terminating pod in status.terminating and replace the pod immediately, or with "+
		"podReplacementPolicy Failed only after the pod has failed.",
		Behavior("cascade.workload.job-replacement", Extended, KCM,
			Source(jobs),
			Promise("You may choose to create replacement Pods only when the terminating Pod is fully terminal (has `status.phase: "+
				"Failed`).")), func(ctx SpecContext) {
			four := WithField(int64(4), "spec", "completions")
			patient, patientPods := start(ctx, "patient", gracefulPods, four,
				WithField("Failed", "spec", "podReplacementPolicy"))
			eager, eagerPods := start(ctx, "eager", gracefulPods, four,
				WithField("TerminatingOrFailed", "spec", "podReplacementPolicy"))

			cluster.Delete(ctx, patientPods[0])
			cluster.Delete(ctx, eagerPods[0])
			counts(ctx, patient, HaveStatus("terminating", int64(1)), HaveStatus("active", int64(1)), HaveStatus("failed", int64(0)))
			counts(ctx, eager, HaveStatus("terminating", int64(1)), HaveStatus("failed", int64(1)))

			// After a failure a Job creates new pods after 10 s, or when another pod succeeds.
			workloads.SetPhase(ctx, cluster, patientPods[1], "Succeeded")
			workloads.SetPhase(ctx, cluster, eagerPods[1], "Succeeded")
			cluster.AwaitDependents(ctx, eager, 4)
			counts(ctx, patient, HaveStatus("terminating", int64(1)), HaveStatus("active", int64(1)), HaveStatus("succeeded", int64(1)))
			Expect(cluster.Get(ctx, patientPods[0])).To(And(BeTerminating(), HaveGracePeriod(30)))
			third := cluster.AwaitDependents(ctx, patient, 3)[2]

			workloads.SetPhase(ctx, cluster, patientPods[0], "Failed")
			counts(ctx, patient, HaveStatus("terminating", int64(0)), HaveStatus("failed", int64(1)))
			workloads.SetPhase(ctx, cluster, third, "Succeeded")
			cluster.AwaitDependents(ctx, patient, 5)
		})

	Specify("A manually deleted pod of a Job must lose the finalizer batch.kubernetes.io/job-tracking, count as failed "+
		"once, and be replaced.",
		Behavior("cascade.workload.job-deleted-pod", Core, KCM,
			Source(jobs),
			Promise("The controller removes the finalizer only after the Pod has been accounted for in the Job status")), func(ctx SpecContext) {
			job, pods := start(ctx, "counted", gracefulPods)

			cluster.Delete(ctx, pods[0])
			counts(ctx, job, HaveStatus("failed", int64(1)))
			cluster.Delete(ctx, pods[0], Grace(0))
			Eventually(ctx, cluster.History(pods[0])).Should(HaveObserved(Terminating(pods[0]), Deleted(pods[0])))

			// After a failure a Job creates new pods after 10 s, or when another pod succeeds.
			workloads.SetPhase(ctx, cluster, pods[1], "Succeeded")
			workloads.SetPhase(ctx, cluster, cluster.AwaitDependents(ctx, job, 3)[2], "Succeeded")
			counts(ctx, job, HaveCondition(string(batchv1.JobComplete)), HaveStatus("failed", int64(1)), HaveStatus("succeeded", int64(2)))
		})

	Specify("A finished Job must be deleted with its pods after ttlSecondsAfterFinished and not before, and must "+
		"remain if the field is not set.",
		Behavior("cascade.workload.job-ttl", Core, GC, KCM,
			Source(jobs),
			Promise("When the TTL controller cleans up the Job, it will delete the Job cascadingly")), func(ctx SpecContext) {
			const ttl = 2
			stays := cluster.Create(ctx, fixtures.Job("stays"), WithField(int64(0), "spec", "completions"))
			job, pods := start(ctx, "goes", WithField(int64(ttl), "spec", "ttlSecondsAfterFinished"), Held)

			workloads.SetPhase(ctx, cluster, pods[0], "Succeeded")
			workloads.SetPhase(ctx, cluster, pods[1], "Succeeded")

			Eventually(ctx, cluster.History(job)).Should(HaveObserved(
				Matching(job, HaveCondition(string(batchv1.JobComplete))), Terminating(job)))
			terminating := cluster.Get(ctx, job)
			cluster.Release(ctx, job)
			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(Deleted, pods...)))
			Expect(terminating.GetDeletionTimestamp().Sub(finishedAt(terminating))).To(BeNumerically(">=", ttl*time.Second))
			Expect(cluster.Get(ctx, stays)).To(And(HaveCondition(string(batchv1.JobComplete)), Not(BeTerminating())))
		})

	Specify("A finished Job is deleted in the foreground when ttlSecondsAfterFinished has passed.",
		Behavior("cascade.workload.job-ttl-in-foreground", Observed, GC, KCM,
			Source("pkg/controller/ttlafterfinished/ttlafterfinished_controller.go")), func(ctx SpecContext) {
			job := cluster.Create(ctx, fixtures.Job("goes"), WithField(int64(0), "spec", "completions"),
				WithField(int64(0), "spec", "ttlSecondsAfterFinished"))

			Eventually(ctx, cluster.History(job)).Should(HaveObserved(Matching(job, HaveFinalizer(metav1.FinalizerDeleteDependents)), Deleted(job)))
		})

	Specify("Suspending a Job must delete its active pods and keep the Job.",
		Behavior("cascade.workload.job-suspended", Core, KCM,
			Source(jobs),
			Promise("Suspending a Job will delete its active Pods until the Job is resumed again.")), func(ctx SpecContext) {
			job, pods := start(ctx, "suspended")

			cluster.Update(ctx, job, WithField(true, "spec", "suspend"))

			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(Deleted, pods...)))
			counts(ctx, job, HaveCondition(string(batchv1.JobSuspended)), HaveStatus("active", int64(0)))
			// The controller delays the processing of pods by a second; when it has counted a later pod it knows that these are gone.
			later, laterPods := start(ctx, "later")
			cluster.Delete(ctx, laterPods[0])
			counts(ctx, later, HaveStatus("failed", int64(1)))
			Expect(cluster.Get(ctx, job)).NotTo(BeTerminating())
			cluster.AwaitDependents(ctx, job, 2)
		})

	Specify("A Job that exceeds activeDeadlineSeconds must remain, with its active pods deleted and its finished pods kept.",
		Behavior("cascade.workload.job-deadline", Core, KCM,
			Source(jobs),
			Promise("Once a Job reaches `activeDeadlineSeconds`, all of its running Pods are terminated and the Job status will "+
				"become `type: Failed`")), func(ctx SpecContext) {
			job, pods := start(ctx, "deadline")
			workloads.SetPhase(ctx, cluster, pods[0], "Succeeded")
			counts(ctx, job, HaveStatus("succeeded", int64(1)))

			cluster.Update(ctx, job, WithField(int64(1), "spec", "activeDeadlineSeconds"))

			Eventually(ctx, cluster.History(pods[1])).Should(HaveObserved(Deleted(pods[1])))
			counts(ctx, job, HaveCondition(string(batchv1.JobFailed)))
			Expect(cluster.Get(ctx, job)).NotTo(BeTerminating())
			Expect(cluster.Get(ctx, pods[0])).NotTo(BeTerminating())
		})

	// ends sets the phase of a pod that ends its Job, and expects the Job to give the other pod its grace period and to wait for it.
	ends := func(ctx SpecContext, job, first, lingering *Object, phase string, condition batchv1.JobConditionType) {
		GinkgoHelper()
		workloads.SetPhase(ctx, cluster, first, phase)

		Eventually(ctx, cluster.History(lingering)).Should(HaveObserved(Matching(lingering, And(BeTerminating(), HaveGracePeriod(30)))))
		cluster.Delete(ctx, lingering, Grace(0))
		counts(ctx, job, HaveCondition(string(condition)), HaveStatus("active", int64(0)))
		Eventually(ctx, cluster.History(lingering)).Should(HaveObserved(Deleted(lingering)))
		Expect(cluster.Get(ctx, job)).NotTo(BeTerminating())
		Expect(cluster.Get(ctx, first)).NotTo(BeTerminating())
	}

	Specify("A Job that meets its success policy must remain, complete, with its remaining pods terminated within their grace period.",
		Behavior("cascade.workload.job-success-policy", Core, KCM, Since("1.31"),
			Source("KEP-3998"), Promise("Once the job meets the successPolicy, the lingering pods are terminated.")), func(ctx SpecContext) {
			job, pods := start(ctx, "success-policy", gracefulPods, WithField("Indexed", "spec", "completionMode"),
				WithField([]any{map[string]any{"succeededIndexes": "0"}}, "spec", "successPolicy", "rules"))
			slices.SortFunc(pods, func(a, b *Object) int { return strings.Compare(completionIndex(a), completionIndex(b)) })

			ends(ctx, job, pods[0], pods[1], "Succeeded", batchv1.JobComplete)
		})

	Specify("A Job that reaches its backoffLimit must remain, failed, with its remaining pods terminated within their grace period.",
		Behavior("cascade.workload.job-backoff", Core, KCM,
			Source(jobs), Promise("the Job will be marked as failed and any running Pods will be terminated.")), func(ctx SpecContext) {
			job, pods := start(ctx, "backoff", gracefulPods, WithField(int64(0), "spec", "backoffLimit"))

			ends(ctx, job, pods[0], pods[1], "Failed", batchv1.JobFailed)
		})
})

// completionIndex returns the index of a pod of an Indexed Job.
func completionIndex(pod *Object) string {
	return pod.GetAnnotations()[batchv1.JobCompletionIndexAnnotation]
}

// finishedAt returns when a Job completed, in whole seconds.
func finishedAt(object *Object) time.Time {
	GinkgoHelper()
	job := batchv1.Job{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job)).To(Succeed())
	return job.Status.CompletionTime.Time
}

var _ = Describe("CronJobs", func() {
	cluster := UseCluster()

	Specify("A CronJob must delete the oldest Jobs beyond its history limits, and with concurrencyPolicy Replace must "+
		"delete a running Job when another is due.",
		Behavior("cascade.workload.cronjob-history", Core, KCM,
			Source("concepts/workloads/controllers/cron-jobs"),
			Promise("The `.spec.successfulJobsHistoryLimit` and `.spec.failedJobsHistoryLimit` fields specify how many completed and "+
				"failed Jobs should be kept.")), func(ctx SpecContext) {
			cron := cluster.Create(ctx, fixtures.CronJob("history"),
				WithField(int64(1), "spec", "successfulJobsHistoryLimit"), WithField(int64(1), "spec", "failedJobsHistoryLimit"))
			job := func(name string, options ...ObjectOption) *Object {
				options = append(options, OwnedBy(cron, Controlling, Blocking), WithField(int64(0), "spec", "parallelism"))
				return cluster.Create(ctx, fixtures.Job(name), options...)
			}
			var succeeded, failed []*Object
			for _, name := range []string{"1", "2"} { // in this order, by name if they start in the same second
				succeeded = append(succeeded, job("succeeded-"+name, WithField(int64(0), "spec", "completions")))
				failed = append(failed, job("failed-"+name, WithField(int64(1), "spec", "activeDeadlineSeconds")))
			}

			replacing := createDue(ctx, cluster, "replacing", WithField("Replace", "spec", "concurrencyPolicy"))
			running := cluster.AwaitDependents(ctx, replacing, 1)[0]
			Eventually(ctx, cluster.History(replacing)).Should(HaveObserved(Matching(replacing, Not(HaveStatus("active", nil)))))
			cluster.Update(ctx, replacing, WithField("0 0 2 1 *", "spec", "schedule"))
			becomesDue(ctx, cluster, replacing)
			next := cluster.AwaitDependents(ctx, replacing, 2)[1]
			Eventually(ctx, cluster.History(running, next)).Should(HaveObserved(Deleted(running), Added(next)))

			Eventually(ctx, cluster.History(succeeded...)).Should(HaveObserved(Deleted(succeeded[0])))
			Eventually(ctx, cluster.History(failed...)).Should(HaveObserved(Deleted(failed[0])))
			// The controller handles CronJobs in the order of their changes.
			cluster.AwaitDependents(ctx, createDue(ctx, cluster, "later"), 1)
			cluster.Settle(ctx)
			Expect(cluster.Get(ctx, succeeded[1])).To(And(HaveCondition(string(batchv1.JobComplete)), Not(BeTerminating())))
			Expect(cluster.Get(ctx, failed[1])).To(And(HaveCondition(string(batchv1.JobFailed)), Not(BeTerminating())))
		})
})
