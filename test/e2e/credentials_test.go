package e2e

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// ownNamespaces are the cluster-wide permissions of users of a self-service platform.
var ownNamespaces = rbacv1.PolicyRule{
	APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create", "get", "delete"},
}

// platform plays a self-service platform: it prepares each new namespace of a user, and then gives the user a role there, but only after
// the user has checked a permission there once.
func (c *cluster) platform(t *testing.T, user, role string, prepare func(ctx context.Context, namespace string) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	t.Cleanup(func() { stop(); <-stopped })
	news := c.follow(t, user)
	go func() {
		defer close(stopped)
		var waiting []string
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			for _, r := range news() {
				switch {
				case r.Verb == "create" && r.of("namespaces"):
					waiting = append(waiting, r.ObjectRef.Name)
				case r.of("selfsubjectaccessreviews"):
					for _, namespace := range waiting {
						c.admit(ctx, t, namespace, user, role, prepare)
					}
					waiting = nil
				}
			}
		}, polling)
	}()
}

// admit gives a user a role in a namespace.
func (c *cluster) admit(ctx context.Context, t *testing.T, namespace, user, role string, prepare func(context.Context, string) error) {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	err := prepare(ctx, namespace)
	if err == nil {
		_, err = c.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	}
	gone := apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	if err != nil && ctx.Err() == nil && !gone {
		t.Errorf("admit %s to %s: %v", user, namespace, err)
	}
}

// restrict makes a namespace accept only pods of the restricted Pod Security Standard with small resource requests.
func (c *cluster) restrict(ctx context.Context, namespace string) error {
	labels := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := c.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: "platform"}
	if _, err := c.CoreV1().LimitRanges(namespace).Create(ctx, &corev1.LimitRange{ObjectMeta: meta, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Min: amounts("1m", "1Mi"), Max: amounts("500m", "64Mi")},
			{Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	hard := corev1.ResourceList{}
	for name, amount := range amounts("8", "4Gi") {
		hard["requests."+name], hard["limits."+name] = amount, amount
	}
	_, err := c.CoreV1().ResourceQuotas(namespace).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: meta, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	return err
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// tenant returns a kubeconfig for a user of a self-service platform, who may do everything, but only in the user's own namespaces.
func (c *cluster) tenant(t *testing.T, user string) string {
	t.Helper()
	kubeconfig := c.user(t, user)
	c.grant(t, user, ownNamespaces)
	c.platform(t, user, "cluster-admin", c.restrict)
	return kubeconfig
}

func TestRBAC_SelfService(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)

	ran := startRun(t, "--kubeconfig", c.tenant(t, "tenant"), "--procs", "4", "--suite", "cascade").wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	tested(t, cluster, []v1alpha1.Feature{v1alpha1.GC, v1alpha1.KCM}, "cascade")
	skipped := reasons(cluster, v1alpha1.Skipped)
	g.Expect(skipped["cascade.custom.background"]).To(Equal(
		"missing permission: create customresourcedefinitions.apiextensions.k8s.io"))
	g.Expect(skipped["cascade.background.collector-uid-precondition"]).To(Equal(
		"missing permission: create validatingwebhookconfigurations.admissionregistration.k8s.io"))
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

func TestRBAC_MissingPermission(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "no-status"
	kubeconfig := c.user(t, user)
	c.grant(t, user, ownNamespaces)
	all := []string{"*"}
	c.role(t, "all-but-pods-status",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "serviceaccounts", "pods", "pods/eviction"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io", "policy"}, Resources: all, Verbs: all},
	)
	c.platform(t, user, "all-but-pods-status", c.restrict)

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "2", "--suite", "graceful", "--label-filter", "features: isEmpty").wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	for _, id := range []string{
		"graceful.immediate-failed", "graceful.immediate-succeeded", "graceful.scheduled-pod-remains", "graceful.version-precondition",
	} {
		result := resultOf(cluster, id)
		g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), id)
		g.Expect(result.Reason).To(MatchRegexp(`^missing permission: patch pods/status in namespace "dc\w+-\d+"$`), id)
	}
	for _, id := range []string{"graceful.immediate-grace-zero", "graceful.repeat-with-shorter-grace", "graceful.default-tolerations"} {
		g.Expect(resultOf(cluster, id).Outcome).To(Equal(v1alpha1.Passed), id)
	}
	g.Expect(reasons(cluster, v1alpha1.Failed)).To(BeEmpty())
	g.Expect(reasons(cluster, v1alpha1.Errored)).To(BeEmpty())
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

func TestRBAC_NoNamespaces(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)

	ran := startRun(t, "--kubeconfig", c.user(t, "nobody")).wait()

	g.Expect(ran.code).To(Equal(3))
	g.Expect(ran.out).To(And(ContainSubstring("preflight refused"), ContainSubstring(`cannot create resource "namespaces"`)))
	g.Expect(ran.cluster(t).Problem).To(ContainSubstring(`User "nobody"`))
}
