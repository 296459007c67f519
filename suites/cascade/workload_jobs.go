package cascade

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/events"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// untracked matches a pod without the finalizer of the Job controller. HaveFinalizers ignores it, as another manager's.
var untracked = Not(HaveFinalizer(batchv1.JobTrackingFinalizer))

// quotaPolling is how often a Job is created as a dry-run until admission, which learns of quotas on a separate watch, refuses it.
const quotaPolling = 100 * time.Millisecond

// handlesMany is how long the Job controller may take to handle 500 pods several times: it usually sends 20 requests a second (the default
// of --kube-api-qps). The Jobs of others wait meanwhile.
const handlesMany = 3 * time.Minute

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

	// awaitsLast expects an ended Job to give its last pod the grace period and to remain, with a terminal condition once the pod is removed.
	awaitsLast := func(ctx SpecContext, job, last *Object, terminal batchv1.JobConditionType) {
		GinkgoHelper()
		Eventually(ctx, cluster.History(last)).Should(HaveObserved(graceful(last)))
		cluster.Delete(ctx, last, Grace(0))
		counts(ctx, job, HaveCondition(string(terminal)), HaveStatus("active", int64(0)))
		Eventually(ctx, cluster.History(last)).Should(HaveObserved(Deleted(last)))
		awaitJobController(ctx, cluster)
		Expect(cluster.Get(ctx, job)).NotTo(BeTerminating())
	}
	// succeeding creates a Job that is successful when its first pod is, and returns that pod and the other one.
	succeeding := func(ctx SpecContext, name string) (job, first, last *Object) {
		GinkgoHelper()
		job, pods := start(ctx, name, gracefulPods, WithField("Indexed", "spec", "completionMode"),
			WithField([]any{map[string]any{"succeededIndexes": "0"}}, "spec", "successPolicy", "rules"))
		byIndex(pods)
		return job, pods[0], pods[1]
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

			cluster.Delete(ctx, eagerPods[0], Grace(0))
			counts(ctx, eager, HaveStatus("terminating", int64(0)), HaveStatus("active", int64(2)), HaveStatus("succeeded", int64(1)))
			workloads.SetPhase(ctx, cluster, patientPods[0], "Failed")
			counts(ctx, patient, HaveStatus("terminating", int64(0)), HaveStatus("failed", int64(1)))
			workloads.SetPhase(ctx, cluster, third, "Succeeded")
			last := cluster.AwaitDependents(ctx, patient, 5)[3:]

			for _, pod := range last { // more than the Job then may run
				cluster.Delete(ctx, pod)
			}
			counts(ctx, patient, HaveStatus("terminating", int64(2)))
			cluster.Update(ctx, patient, WithField(int64(0), "spec", "parallelism"))
			workloads.SetPhase(ctx, cluster, last[0], "Failed")
			counts(ctx, patient, HaveStatus("terminating", int64(1)), HaveStatus("failed", int64(2)))
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

	Specify("A deleted pod of a Job must lose the finalizer batch.kubernetes.io/job-tracking while the creation of the next pod is "+
		"delayed, even if another pod is ready.",
		Behavior("cascade.workload.job-deleted-pod-released", Core, KCM, Since("1.37"),
			Source(jobs), Promise("This ensures that deleted pods have their finalizers removed by the Job controller.")), func(ctx SpecContext) {
			job, pods := start(ctx, "released", gracefulPods)
			becomesReady(ctx, cluster, pods[1])
			counts(ctx, job, HaveStatus("ready", int64(1)))

			cluster.Delete(ctx, pods[0])

			// After a failure a Job creates new pods after 10 s.
			counts(ctx, job, HaveStatus("failed", int64(1)), HaveStatus("active", int64(1)), HaveStatus("ready", int64(1)))
			Eventually(ctx, cluster.History(pods[0])).Should(HaveObserved(Matching(pods[0], And(BeTerminating(), untracked))))
		})

	Specify("A pod of a Job that the Job has counted as failed must lose the finalizer batch.kubernetes.io/job-tracking even if the pod "+
		"succeeds before.",
		Behavior("cascade.workload.job-counted-pod-succeeds", Core, KCM, Hook,
			Source(jobs), Promise("This ensures that deleted pods have their finalizers removed by the Job controller.")), func(ctx SpecContext) {
			job, pods := start(ctx, "counted", gracefulPods)
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Update))
			webhook.Deny(pods[0], "not yet")
			cluster.Delete(ctx, pods[0])
			webhook.AwaitReview(ctx, pods[0])
			counts(ctx, job, HaveJSONPath("{.status.uncountedTerminatedPods.failed[*]}", string(pods[0].GetUID())))

			workloads.SetPhase(ctx, cluster, pods[0], "Succeeded")
			workloads.SetPhase(ctx, cluster, pods[1], "Succeeded")
			counts(ctx, job, HaveStatus("succeeded", int64(1))) // the controller knows both
			webhook.Allow(pods[0])

			Eventually(ctx, cluster.History(pods[0])).Should(HaveObserved(Matching(pods[0], And(BeTerminating(), untracked))))
			counts(ctx, job, HaveStatus("failed", int64(1)), HaveStatus("succeeded", int64(1)),
				HaveJSONPath("{.status.uncountedTerminatedPods.failed[*]}", ""))
		})

	Specify("The finalizer batch.kubernetes.io/job-tracking is removed from a deleted pod of a finished Job.",
		Behavior("cascade.workload.job-finished-pod", Observed, KCM, Source("pkg/controller/job/job_controller.go")), func(ctx SpecContext) {
			job, pods := start(ctx, "finished")
			for _, pod := range pods {
				workloads.SetPhase(ctx, cluster, pod, "Succeeded")
			}
			counts(ctx, job, HaveCondition(string(batchv1.JobComplete)))
			cluster.Update(ctx, pods[0], WithFinalizers(batchv1.JobTrackingFinalizer))

			cluster.Delete(ctx, pods[0])

			Eventually(ctx, cluster.History(pods[0])).Should(HaveObserved(Terminating(pods[0]), Deleted(pods[0])))
		})

	Specify("The finalizer batch.kubernetes.io/job-tracking is removed from the pods of a finished Job when the Job is written.",
		Behavior("cascade.workload.job-finished-written", Observed, KCM, Since("1.29"), Source("pkg/controller/job/job_controller.go")), func(ctx SpecContext) {
			job, pods := start(ctx, "finished")
			for _, pod := range pods {
				workloads.SetPhase(ctx, cluster, pod, "Succeeded")
			}
			counts(ctx, job, HaveCondition(string(batchv1.JobComplete)))
			pod := cluster.Update(ctx, pods[0], WithFinalizers(batchv1.JobTrackingFinalizer), WithLabel("again", "tracked"))

			awaitJobController(ctx, cluster) // knows the pod, and has handled what the end of the Job leaves to do
			cluster.Update(ctx, job, WithLabel("again", "written"))

			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(
				Matching(pod, And(HaveJSONPath("{.metadata.labels.again}", "tracked"), untracked))))
		})

	Specify("The Job controller keeps the finalizer batch.kubernetes.io/job-tracking on a pod that another kind controls.",
		Behavior("cascade.workload.job-tracking-of-others", Observed, KCM, Since("1.31"), Source("pkg/controller/job/job_controller.go")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			controlled := cluster.Create(ctx, fixtures.UnscheduledPod("controlled"), OwnedBy(owner, Controlling), WithFinalizers(batchv1.JobTrackingFinalizer))
			DeferCleanup(func(ctx SpecContext) {
				cluster.TryUpdate(ctx, controlled, WithoutFinalizers(batchv1.JobTrackingFinalizer))
			})

			cluster.Delete(ctx, controlled)

			later := cluster.Create(ctx, fixtures.UnscheduledPod("later"), WithFinalizers(batchv1.JobTrackingFinalizer))
			Eventually(ctx, cluster.History(later)).Should(HaveObserved(Matching(later, untracked)))
			cluster.Settle(ctx)
			Expect(cluster.Get(ctx, controlled)).To(And(BeTerminating(), HaveFinalizers(batchv1.JobTrackingFinalizer)))
		})

	Specify("A Job that no longer counts deleted pods in status.active counts them in status.terminating, and no longer as ready.",
		Behavior("cascade.workload.job-status-in-one-write", Observed, KCM, Hook, Since("1.31"), Source("pkg/controller/job/job_controller.go")),
		func(ctx SpecContext) {
			suspended, suspendedPods := start(ctx, "suspended", gracefulPods)
			overdue, overduePods := start(ctx, "overdue", gracefulPods)
			for job, pods := range map[*Object][]*Object{suspended: suspendedPods, overdue: overduePods} {
				becomesReady(ctx, cluster, pods[0])
				counts(ctx, job, HaveStatus("ready", int64(1)))
			}
			// It also sees what the validation then refuses.
			webhook := webhooks.Mutating(ctx, cluster, webhooks.OnOperations(registrationv1.Update), webhooks.OnResources("jobs/status"))

			cluster.Update(ctx, suspended, WithField(true, "spec", "suspend"))
			cluster.Update(ctx, overdue, WithField(int64(1), "spec", "activeDeadlineSeconds"))

			for _, job := range []*Object{suspended, overdue} {
				written := &Object{}
				Expect(json.Unmarshal(webhook.AwaitReview(ctx, job).Object.Raw, written)).To(Succeed())
				Expect(written).To(And(HaveStatus("active", int64(0)), HaveStatus("terminating", int64(2)), HaveStatus("ready", int64(0))))
			}
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

	Specify("Suspending a Job must delete its active pods with their grace period, and must keep the Job.",
		Behavior("cascade.workload.job-suspended", Core, KCM,
			Source(jobs),
			Promise("any running Pods that don't have a status of `Completed` will be terminated ... The Pod's graceful termination "+
				"period will be honored")), func(ctx SpecContext) {
			job, pods := start(ctx, "suspended", gracefulPods)

			cluster.Update(ctx, job, WithField(true, "spec", "suspend"))

			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(graceful, pods...)))
			counts(ctx, job, HaveCondition(string(batchv1.JobSuspended)), HaveStatus("active", int64(0)))
			for _, pod := range pods {
				cluster.Delete(ctx, pod, Grace(0))
			}
			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(Deleted, pods...)))
			// The controller delays the processing of pods by a second; when it has counted a later pod it knows that these are gone.
			later, laterPods := start(ctx, "later")
			cluster.Delete(ctx, laterPods[0])
			counts(ctx, later, HaveStatus("failed", int64(1)))
			Expect(cluster.Get(ctx, job)).NotTo(BeTerminating())
			cluster.AwaitDependents(ctx, job, 2)
		})

	Specify("A Job that exceeds activeDeadlineSeconds must remain, with its active pods deleted with their grace period and its "+
		"finished pods kept.",
		Behavior("cascade.workload.job-deadline", Core, KCM,
			Source(jobs),
			Promise("Once a Job reaches `activeDeadlineSeconds`, all of its running Pods are terminated and the Job status will "+
				"become `type: Failed`")), func(ctx SpecContext) {
			job, pods := start(ctx, "deadline", gracefulPods)
			workloads.SetPhase(ctx, cluster, pods[0], "Succeeded")
			counts(ctx, job, HaveStatus("succeeded", int64(1)))

			cluster.Update(ctx, job, WithField(int64(1), "spec", "activeDeadlineSeconds"))

			awaitsLast(ctx, job, pods[1], batchv1.JobFailed)
			Expect(cluster.Get(ctx, pods[0])).NotTo(BeTerminating())
		})

	Specify("A Job that meets its success policy must remain, complete, with its remaining pods terminated within their grace period.",
		Behavior("cascade.workload.job-success-policy", Core, KCM, Since("1.31"),
			Source("KEP-3998"), Promise("Once the job meets the successPolicy, the lingering pods are terminated.")), func(ctx SpecContext) {
			job, first, last := succeeding(ctx, "success-policy")

			workloads.SetPhase(ctx, cluster, first, "Succeeded")

			awaitsLast(ctx, job, last, batchv1.JobComplete)
			Expect(cluster.Get(ctx, first)).NotTo(BeTerminating())
		})

	Specify("A Job that reaches its backoffLimit must remain, failed, with its remaining pods terminated within their grace period.",
		Behavior("cascade.workload.job-backoff", Core, KCM,
			Source(jobs), Promise("the Job will be marked as failed and any running Pods will be terminated.")), func(ctx SpecContext) {
			job, pods := start(ctx, "backoff", gracefulPods, WithField(int64(0), "spec", "backoffLimit"))

			workloads.SetPhase(ctx, cluster, pods[0], "Failed")

			awaitsLast(ctx, job, pods[1], batchv1.JobFailed)
			Expect(cluster.Get(ctx, pods[0])).NotTo(BeTerminating())
		})

	Specify("While a pod of an ended Job is terminating, the Job must have the condition FailureTarget or SuccessCriteriaMet and must "+
		"not have the condition Failed or Complete.",
		Behavior("cascade.workload.job-terminal-condition", Core, KCM, Since("1.31"),
			Source(jobs), Promise("the controller only adds the Job terminal conditions _after_ all of the Pods are terminated.")), func(ctx SpecContext) {
			failing, pods := start(ctx, "failing", gracefulPods, WithField(int64(0), "spec", "backoffLimit"))
			succeeding, first, _ := succeeding(ctx, "succeeding")
			terminating := HaveStatus("terminating", int64(1))

			workloads.SetPhase(ctx, cluster, pods[0], "Failed")
			workloads.SetPhase(ctx, cluster, first, "Succeeded")

			counts(ctx, failing, HaveCondition(string(batchv1.JobFailureTarget)), terminating)
			counts(ctx, succeeding, HaveCondition(string(batchv1.JobSuccessCriteriaMet)), terminating)
			awaitJobController(ctx, cluster)
			Expect(cluster.Get(ctx, failing)).To(And(terminating, Not(HaveCondition(string(batchv1.JobFailed)))))
			Expect(cluster.Get(ctx, succeeding)).To(And(terminating, Not(HaveCondition(string(batchv1.JobComplete)))))
		})

	// ignoring makes a Job ignore pods that fail because of a disruption.
	ignoring := WithField([]any{map[string]any{
		"action": "Ignore", "onPodConditions": []any{map[string]any{"type": "DisruptionTarget", "status": "True"}},
	}}, "spec", "podFailurePolicy", "rules")

	Specify("A deleted pod of a Job with a podFailurePolicy must keep the finalizer batch.kubernetes.io/job-tracking, must not count as "+
		"failed and must not be replaced until it has failed.",
		Behavior("cascade.workload.job-failure-policy", Core, KCM, Since("1.31"),
			Source(jobs), Promise("the Job controller recreates terminating Pods only once these Pods reach the terminal `Failed` phase.")),
		func(ctx SpecContext) {
			job, pods := start(ctx, "failure-policy", gracefulPods, WithField(int64(4), "spec", "completions"), ignoring)

			cluster.Delete(ctx, pods[0])
			counts(ctx, job, HaveStatus("terminating", int64(1)), HaveStatus("active", int64(1)))
			// After a failure a Job creates new pods after 10 s, or when another pod succeeds.
			workloads.SetPhase(ctx, cluster, pods[1], "Succeeded")
			counts(ctx, job, HaveStatus("terminating", int64(1)), HaveStatus("active", int64(1)), HaveStatus("succeeded", int64(1)))
			third := cluster.AwaitDependents(ctx, job, 3)[2]
			Expect(cluster.Get(ctx, pods[0])).To(And(BeTerminating(), HaveFinalizers(batchv1.JobTrackingFinalizer)))
			Expect(cluster.Get(ctx, job)).To(HaveStatus("failed", int64(0)))

			workloads.SetPhase(ctx, cluster, pods[0], "Failed")
			counts(ctx, job, HaveStatus("terminating", int64(0)), HaveStatus("failed", int64(1)))
			workloads.SetPhase(ctx, cluster, third, "Succeeded")
			cluster.AwaitDependents(ctx, job, 5)
		})

	Specify("An evicted pod must not count as a failure of its Job if the podFailurePolicy ignores the condition DisruptionTarget.",
		Behavior("cascade.workload.job-ignored-disruption", Core, KCM, Since("1.31"),
			Source(jobs), Promise("use to indicate that the counter towards the `.spec.backoffLimit` should not be incremented and a replacement Pod should be "+
				"created.")),
		func(ctx SpecContext) {
			job, pods := start(ctx, "ignoring", gracefulPods, WithField(int64(0), "spec", "backoffLimit"), ignoring)

			Require(cluster.TryEvict(ctx, pods[0]))
			workloads.SetPhase(ctx, cluster, pods[0], "Failed")
			Eventually(ctx, cluster.History(pods[0])).Should(HaveObserved(Matching(pods[0], untracked)))
			// After a failure a Job creates new pods after 10 s, or when another pod succeeds.
			workloads.SetPhase(ctx, cluster, pods[1], "Succeeded")
			workloads.SetPhase(ctx, cluster, cluster.AwaitDependents(ctx, job, 3)[2], "Succeeded")

			counts(ctx, job, HaveCondition(string(batchv1.JobComplete)), HaveStatus("failed", int64(0)), HaveStatus("succeeded", int64(2)))
		})

	Specify("The Job controller must change neither a Job that spec.managedBy gives to another controller nor its pods.",
		Behavior("cascade.workload.job-managed-by", Core, KCM, Since("1.35"),
			Source(jobs), Promise("This feature allows you to disable the built-in Job controller, for a specific Job")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			managed := cluster.Create(ctx, fixtures.Job("managed"), withManualSelector, WithField("example.com/other", "spec", "managedBy"))
			owned := []ObjectOption{
				OwnedBy(managed, Controlling, Blocking), WithLabel(appLabel, "managed"), WithFinalizers(batchv1.JobTrackingFinalizer),
			}
			living := cluster.Create(ctx, fixtures.UnscheduledPod("living"), owned...)
			deleted := cluster.Create(ctx, fixtures.UnscheduledPod("deleted"), owned...)

			cluster.Delete(ctx, deleted)
			suspended := cluster.Update(ctx, managed, WithField(true, "spec", "suspend"))

			awaitJobController(ctx, cluster)
			Expect(cluster.Get(ctx, managed)).To(And(BeUnchangedSince(suspended), Not(HaveCondition(string(batchv1.JobSuspended)))))
			Expect(cluster.Get(ctx, living)).To(BeUnchangedSince(living))
			Expect(cluster.Get(ctx, deleted)).To(And(BeTerminating(), HaveFinalizers(batchv1.JobTrackingFinalizer)))
			cluster.AwaitDependents(ctx, managed, 2)
		})

	Specify("Scaling down an Indexed Job must delete the pods with the highest indexes.",
		Behavior("cascade.workload.elastic-job", Core, KCM, Since("1.31"),
			Source(jobs), Promise("When scaling down, Kubernetes removes the Pods with higher indexes.")), func(ctx SpecContext) {
			scaled := func(pods int64) ObjectOption {
				return func(job *Object) {
					WithField(pods, "spec", "parallelism")(job)
					WithField(pods, "spec", "completions")(job)
				}
			}
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			job := cluster.Create(ctx, fixtures.Job("elastic"), scaled(4), WithField("Indexed", "spec", "completionMode"))
			pods := cluster.AwaitDependents(ctx, job, 4)
			byIndex(pods)

			cluster.Update(ctx, job, scaled(2))

			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(Deleted, pods[2:]...)))
			counts(ctx, job, HaveStatus("active", int64(2)))
			for _, pod := range pods[:2] {
				Expect(cluster.Get(ctx, pod)).NotTo(BeTerminating())
			}
		})

	Specify("A terminating pod must lose the finalizer batch.kubernetes.io/job-tracking once its Job is deleted, even if the first "+
		"removals are refused.",
		Behavior("cascade.workload.job-tracking-retried", Core, KCM, Hook, Since("1.37"),
			Source(jobs), Promise("This ensures that deleted pods have their finalizers removed by the Job controller.")), func(ctx SpecContext) {
			job, pods := start(ctx, "retried", gracefulPods) // the pod garbage collector soon writes pods without a node
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Update))
			webhook.Deny(pods[0], "not yet")
			cluster.Delete(ctx, pods[0], Grace(0))
			refused := len(webhook.AwaitReviews(ctx, pods[0], 1))

			cluster.Delete(ctx, job, Background)

			webhook.AwaitReviews(ctx, pods[0], refused+2) // the controller may have sent one of them before the delete
			Expect(cluster.Get(ctx, pods[0])).To(And(BeTerminating(), HaveFinalizers(batchv1.JobTrackingFinalizer)))
			webhook.Allow(pods[0])
			Eventually(ctx, cluster.History(pods[0])).Should(HaveObserved(Terminating(pods[0]), Deleted(pods[0])))
		})

	// startMany creates an Indexed Job with more pods than the 500 that its controller counts at once, and returns them by their index.
	startMany := func(ctx SpecContext, name string, count int64) (*Object, []*Object) {
		GinkgoHelper()
		cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
		job := cluster.Create(ctx, fixtures.Job(name), WithField("Indexed", "spec", "completionMode"), WithField(int64(0), "spec", "backoffLimit"),
			WithField(count, "spec", "parallelism"), WithField(count, "spec", "completions"))
		Eventually(ctx, cluster.History(job)).WithTimeout(cluster.Session().AtLeast(handlesMany)).Should(HaveObserved(Matching(job, HaveStatus("active", count))))
		pods := cluster.AwaitDependents(ctx, job, int(count))
		byIndex(pods)
		return job, pods
	}
	// refusing registers a webhook that reviews what the Job controller does with many pods.
	refusing := func(ctx SpecContext) *webhooks.Webhook {
		GinkgoHelper()
		return webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Update)).Within(cluster.Session().AtLeast(handlesMany))
	}

	Specify("A failed Job with more than 500 pods must count each of them once, even if the removals of their finalizers "+
		"batch.kubernetes.io/job-tracking were refused.",
		Behavior("cascade.workload.job-many-failed-pods", Core, KCM, Hook, Disruptive, Disturbs(KCM), Slow, Source(jobs),
			Promise("The controller removes the finalizer only after the Pod has been accounted for in the Job status")), func(ctx SpecContext) {
			job, pods := startMany(ctx, "failed", 501)
			webhook := refusing(ctx)
			for _, pod := range pods {
				webhook.Deny(pod, "not yet")
			}

			workloads.SetPhase(ctx, cluster, pods[0], "Failed") // ends the Job, so that all pods count as failed
			webhook.AwaitReviews(ctx, pods[0], 3)               // the controller has handled the pods twice
			for _, pod := range pods {
				webhook.Allow(pod)
			}

			Eventually(ctx, cluster.History(job)).WithTimeout(cluster.Session().AtLeast(handlesMany)).Should(HaveObserved(
				Matching(job, And(HaveCondition(string(batchv1.JobFailed)), HaveStatus("failed", int64(len(pods)))))))
			Eventually(ctx, cluster.History(pods[1:]...)).Should(HaveObserved(Each(Deleted, pods[1:]...)))
		})

	Specify("A Job with more than 500 succeeded pods does not get the condition Complete while one of them has the finalizer "+
		"batch.kubernetes.io/job-tracking.",
		Behavior("cascade.workload.job-many-succeeded-pods", Observed, KCM, Hook, Disruptive, Disturbs(KCM), Slow,
			Source("pkg/controller/job/job_controller.go")), func(ctx SpecContext) {
			job, pods := startMany(ctx, "succeeded", 502)
			first, last := pods[0], pods[len(pods)-1]
			webhook := refusing(ctx)
			webhook.Hold(first)
			webhook.Deny(last, "not yet")

			workloads.SetPhase(ctx, cluster, first, "Succeeded")
			webhook.AwaitReview(ctx, first) // the controller looks at the pods again when it has a response
			for _, pod := range pods[1:] {
				workloads.SetPhase(ctx, cluster, pod, "Succeeded")
			}
			webhook.Allow(first)

			webhook.AwaitReview(ctx, last)
			awaitJobController(ctx, cluster)
			Expect(cluster.Get(ctx, job)).NotTo(HaveCondition(string(batchv1.JobComplete)))
			webhook.Allow(last)
			counts(ctx, job, HaveCondition(string(batchv1.JobComplete)), HaveStatus("succeeded", int64(len(pods))))
			Expect(cluster.Get(ctx, last)).To(untracked)
		})
})

// graceful matches a terminating pod of gracefulPods with its whole grace period.
func graceful(pod *Object) EventMatcher {
	return Matching(pod, And(BeTerminating(), HaveGracePeriod(30)))
}

// awaitJobController waits until the Job controller has completed a later Job.
func awaitJobController(ctx SpecContext, cluster *Cluster) {
	GinkgoHelper()
	later := cluster.Create(ctx, fixtures.Job("later"), Named(cluster.FreeName("later-"+rand.String(6))),
		WithLabel(CanaryLabel, "true"), WithField(int64(0), "spec", "completions"))
	Eventually(ctx, cluster.History(later)).Should(HaveObserved(Matching(later, HaveCondition(string(batchv1.JobComplete)))))
	cluster.Settle(ctx)
}

// byIndex sorts pods of an Indexed Job.
func byIndex(pods []*Object) {
	GinkgoHelper()
	slices.SortFunc(pods, func(a, b *Object) int { return completionIndex(a) - completionIndex(b) })
}

// completionIndex returns the index of a pod of an Indexed Job.
func completionIndex(pod *Object) int {
	GinkgoHelper()
	index, err := strconv.Atoi(pod.GetAnnotations()[batchv1.JobCompletionIndexAnnotation])
	Expect(err).NotTo(HaveOccurred())
	return index
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

	Specify("A CronJob must delete the oldest Jobs beyond its history limits even if its next Job is refused.",
		Behavior("cascade.workload.cronjob-history-refused", Core, KCM, Namespace,
			Source("concepts/workloads/controllers/cron-jobs"),
			Promise("The `.spec.successfulJobsHistoryLimit` and `.spec.failedJobsHistoryLimit` fields specify how many completed and "+
				"failed Jobs should be kept.")), func(ctx SpecContext) {
			cluster := cluster.In(cluster.Create(ctx, fixtures.Namespace("refusing")))
			cron := cluster.Create(ctx, fixtures.CronJob("refused"))
			var ended []*Object
			for _, name := range []string{"1", "2"} { // in this order, by name if they start in the same second
				job := cluster.Create(ctx, fixtures.Job("ended-"+name), OwnedBy(cron, Controlling, Blocking), WithField(int64(0), "spec", "completions"))
				Eventually(ctx, cluster.History(job)).Should(HaveObserved(Matching(job, HaveCondition(string(batchv1.JobComplete)))))
				ended = append(ended, job)
			}
			cluster.Create(ctx, fixtures.ResourceQuota("quota"), WithField(map[string]any{"count/jobs.batch": "0"}, "spec", "hard"))
			Eventually(ctx, func() Response { return cluster.DryRun().TryCreate(ctx, fixtures.Job("late")) }).
				WithPolling(quotaPolling).Should(HaveStatusCode(http.StatusForbidden))
			becomesDue(ctx, cluster, cron)
			events.Await(ctx, cluster, cron, "FailedCreate")

			cluster.Update(ctx, cron, WithField(int64(1), "spec", "successfulJobsHistoryLimit"))

			Eventually(ctx, cluster.History(ended...)).Should(HaveObserved(Deleted(ended[0])))
			Expect(cluster.Get(ctx, ended[1])).NotTo(BeTerminating())
		})
})
