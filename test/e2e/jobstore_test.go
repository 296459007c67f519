package e2e

import (
	"bytes"
	"crypto/rand"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobstore"
)

// storing creates a suspended Job, and returns its pod with a user who has only the permissions of deploy/job.
func (c *cluster) storing(t *testing.T, name string) (pod jobstore.Pod, kubeconfig string) {
	t.Helper()
	g := NewWithT(t)
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	job, err := c.BatchV1().Jobs(name).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{
		Suspend: new(true), CompletionMode: new(batchv1.IndexedCompletion), Completions: new(int32(2)), Parallelism: new(int32(2)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "runner", Image: "none"}},
		}},
	}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.RbacV1().Roles(name).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "delete", "get", "update"}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.RbacV1().RoleBindings(name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return jobstore.Pod{Namespace: name, Name: "first", Job: "job", JobUID: string(job.UID), Index: 1}, c.user(t, name)
}

func TestJob_LargeReport(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	pod, kubeconfig := c.storing(t, "storing")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	reader, err := jobstore.NewReader(c.config, pod.Namespace, pod.Job)
	g.Expect(err).NotTo(HaveOccurred())
	configMaps := func() []corev1.ConfigMap {
		list, err := c.CoreV1().ConfigMaps(pod.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: jobstore.JobLabel + "=job"})
		g.Expect(err).NotTo(HaveOccurred())
		return list.Items
	}
	stored := func() (jobstore.Progress, []byte) {
		state, err := reader.Job(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(state).To(Equal(jobstore.State{UID: pod.JobUID, Indexes: 2}))
		progress, err := reader.Progress(t.Context(), state)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(progress).To(HaveLen(1))
		content, err := reader.Report(t.Context(), progress[0])
		if progress[0].Report.Parts == 0 {
			return progress[0], nil
		}
		g.Expect(err).NotTo(HaveOccurred())
		return progress[0], content
	}

	writer, err := jobstore.NewWriter(t.Context(), config, pod)
	g.Expect(err).NotTo(HaveOccurred())
	progress, _ := stored()
	g.Expect(progress).To(And(HaveField("Index", 1), HaveField("Attempt", "first"), HaveField("Ended", false)))

	large := make([]byte, 2<<20) // which cannot be compressed
	_, err = rand.Read(large)
	g.Expect(err).NotTo(HaveOccurred())
	put(t, writer, large)
	progress, content := stored()
	g.Expect(progress.Report.Parts).To(Equal(3))
	log, err := progress.Log()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(log)).To(Equal("output\n"))
	g.Expect(bytes.Equal(content, large)).To(BeTrue())
	for _, configMap := range configMaps() {
		g.Expect(configMap.OwnerReferences).To(HaveExactElements(And(HaveField("Kind", "Job"), HaveField("UID", BeEquivalentTo(pod.JobUID)))))
	}

	put(t, writer, []byte("small"))
	progress, content = stored()
	g.Expect(string(content)).To(Equal("small"))
	g.Expect(progress.Report.Generation).To(Equal(2))
	g.Expect(configMaps()).To(HaveLen(2), "the progress and one part: the earlier report was deleted")

	pod.Name = "second"
	again, err := jobstore.NewWriter(t.Context(), config, pod)
	g.Expect(err).NotTo(HaveOccurred())
	progress, _ = stored()
	g.Expect(progress).To(And(HaveField("Attempt", "second"), HaveField("Report.Parts", 0)), "a new attempt has no report yet")
	g.Expect(configMaps()).To(HaveLen(1))
	again.End(1, nil)
	put(t, again, []byte("again"))
	progress, content = stored()
	g.Expect(progress).To(And(HaveField("Ended", true), HaveField("ExitCode", 1)))
	g.Expect(string(content)).To(Equal("again"))
	_, err = again.PutReport(t.Context(), make([]byte, jobstore.MaxReport+1))
	g.Expect(err).To(MatchError(ContainSubstring("more than the")))
}

// put stores a report, and makes it visible.
func put(t *testing.T, writer *jobstore.Writer, content []byte) {
	t.Helper()
	g := NewWithT(t)
	compressed, err := jobstore.Compress(content)
	g.Expect(err).NotTo(HaveOccurred())
	replaced, err := writer.PutReport(t.Context(), compressed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writer.PutProgress(t.Context(), []byte("output\n"), 0)).To(Succeed())
	g.Expect(replaced(t.Context())).To(Succeed())
}

func TestJob_MissingPermission(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	config, err := clientcmd.BuildConfigFromFlags("", c.user(t, "stores-nothing"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = jobstore.NewWriter(t.Context(), config, jobstore.Pod{Namespace: "default", Name: "pod", Job: "job", JobUID: "uid"})
	g.Expect(err).To(MatchError(ContainSubstring(`missing permission: create, get, update and delete configmaps in namespace "default"`)))
}

func TestCollect_InvalidInput(t *testing.T) {
	t.Parallel()
	c := shared.in(t)
	kubeconfig := c.admin(t, "collects")
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{nil, "--job is required"},
		{[]string{"--job", "none", "--kubeconfig", kubeconfig}, `--job: no such Job: "none" in namespace "deletion-conformance"`},
	} {
		ran := start(t, emptyEnvironment(t), append([]string{"collect"}, test.arguments...)...).wait()
		g := NewWithT(t)
		g.Expect(ran.code).To(Equal(2))
		g.Expect(ran.errOut).To(ContainSubstring(test.want))
	}
}
