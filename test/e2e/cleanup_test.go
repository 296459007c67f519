package e2e

import (
	"bytes"
	"compress/gzip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
)

// plant creates a namespace named after a run with what a stranger could put there in the hope that an administrator's cleanup acts on it: a
// ClusterRoleBinding in a ConfigMap, and an expired lease that names a Deployment of others.
func (c *cluster) plant(t *testing.T, run string) {
	t.Helper()
	g, labels := NewWithT(t), map[string]string{session.RunLabel: run}
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: run + "-1", Labels: labels}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err = writer.Write([]byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"` + run + `"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"mallory"}]}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writer.Close()).To(Succeed())
	_, err = c.CoreV1().ConfigMaps(run+"-1").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "definition-abcdef", Labels: map[string]string{
			session.RunLabel: run, "deletion-conformance.github.io/definition": "kept",
		}},
		BinaryData: map[string][]byte{"definition.json.gz": packed.Bytes()},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoordinationV1().Leases(run+"-1").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "deletion-conformance", Labels: labels, Annotations: map[string]string{
			"deletion-conformance.github.io/controller": "kube-system/coredns",
		}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &run, LeaseDurationSeconds: new(int32(30)), RenewTime: new(metav1.NewMicroTime(time.Now().Add(-time.Hour))),
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// copied creates objects of others with the label of a run: a namespace with content, and a ClusterRole.
func (c *cluster) copied(t *testing.T, name, run string) (unchanged func(g Gomega)) {
	t.Helper()
	g, labels := NewWithT(t), map[string]string{session.RunLabel: run}
	meta := metav1.ObjectMeta{Name: name, Labels: labels}
	namespace, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	role, err := c.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	ours, err := c.CoreV1().ConfigMaps(name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return func(g Gomega) {
		still, err := c.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(still).To(And(HaveField("UID", namespace.UID), HaveField("DeletionTimestamp", BeNil())))
		g.Expect(c.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})).To(HaveField("UID", role.UID))
		g.Expect(c.CoreV1().ConfigMaps(name).Get(t.Context(), name, metav1.GetOptions{})).To(HaveField("ResourceVersion", ours.ResourceVersion))
	}
}

func TestCleanup_PlantedAndCopied(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	kubeconfig, run := c.admin(t, "gullible"), environment.NewRunID()
	c.plant(t, run)
	unchanged := c.copied(t, "payments", run)
	cleanUp := func(arguments ...string) outcome {
		return start(t, emptyEnvironment(t), append([]string{"cleanup", "--kubeconfig", kubeconfig, "--run", run}, arguments...)...).wait()
	}

	for _, arguments := range [][]string{{"--dry-run"}, nil} {
		cleaned := cleanUp(arguments...)
		g.Expect(cleaned.code).To(BeZero(), cleaned.errOut)
		g.Expect(cleaned.out).To(And(
			ContainSubstring("  Namespace %s-1\n", run), ContainSubstring("  ConfigMap %s-1/definition-abcdef\n", run),
			ContainSubstring("  Namespace payments (label of run %s)\n", run), ContainSubstring("  ClusterRole payments (label of run %s)\n", run)))
		unchanged(g)
		_, err := c.RbacV1().ClusterRoleBindings().Get(t.Context(), run, metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "nothing that the cluster says is created")
		_, err = c.CoreV1().Namespaces().Get(t.Context(), run+"-1", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(Equal(arguments == nil), "only --dry-run keeps it")
	}
}

func TestCleanup_JobWithKnownID(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const uid = "0b0f7f0e-6a0c-4a53-9c2f-7f3a4e1f3b11" // known to every user who may read the Job or its pods
	run := environment.RunIDOf(uid + "/")
	c.plant(t, run)
	unchanged := c.copied(t, "invoices", run)
	begun := start(t, append(emptyEnvironment(t), "JOB_UID="+uid), "--kubeconfig", c.admin(t, "job-of-admin"), "--procs", "1", "--label-filter", "finalizers.held").wait()

	g.Expect(begun.code).To(BeZero(), begun.errOut)
	g.Expect(begun.out).To(ContainSubstring("removing what an earlier attempt of this run left"))
	unchanged(g)
	_, err := c.RbacV1().ClusterRoleBindings().Get(t.Context(), run, metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}

func TestCleanup_Confirmation(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)
	kubeconfig, run, kept := c.admin(t, "careful"), environment.NewRunID(), environment.NewRunID()
	c.plant(t, run)
	c.plant(t, kept)
	mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "deletion-conformance-kept"}} // of --keep-failed
	_, err := c.CoreV1().ConfigMaps(kept+"-1").Create(t.Context(), mark, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	refused := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig).wait()
	g.Expect(refused.code).To(Equal(2))
	g.Expect(refused.errOut).To(ContainSubstring("nothing was removed: check the list, then use --yes or --run ID"))
	g.Expect(refused.out).To(MatchRegexp(`(?m)^run %s left on embedded:\n  Namespace %s-1$`, run, run))
	g.Expect(c.mentioning(t, run)).NotTo(BeEmpty())

	g.Expect(start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--yes").wait().code).To(BeZero())
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
	g.Expect(c.mentioning(t, kept)).NotTo(BeEmpty())
	named := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", kept).wait()
	g.Expect(named.code).To(BeZero())
	g.Expect(c.mentioning(t, kept)).To(BeEmpty())
}

func TestCleanup_UnreadableKinds(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	run := environment.NewRunID()
	c.plant(t, run)
	kubeconfig := c.user(t, "janitor")
	c.grant(t, "janitor", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "get", "watch", "delete"}})

	cleaned := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", run, "--dry-run").wait()

	g.Expect(cleaned.code).To(BeZero(), cleaned.errOut)
	g.Expect(cleaned.out).To(And(ContainSubstring("could not be listed, and may contain more leftovers:"), ContainSubstring(`cannot list resource "configmaps"`)))
	g.Expect(start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", c.admin(t, "caretaker"), "--run", run).wait().code).To(BeZero())
}
