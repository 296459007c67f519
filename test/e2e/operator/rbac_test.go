package operator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// grant gives a user cluster-wide rules, and others in the operator's namespace.
func (o operator) grant(t *testing.T, user string, everywhere, inside []rbacv1.PolicyRule) {
	t.Helper()
	g, subjects := NewWithT(t), []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	named := metav1.ObjectMeta{Name: user}
	_, err := o.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: named, Rules: everywhere}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = o.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: named, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = o.RbacV1().Roles(o.name).Create(t.Context(), &rbacv1.Role{ObjectMeta: named, Rules: inside}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = o.RbacV1().RoleBindings(o.name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: named, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// ofController returns the rules of the role for a controller's namespace without one verb.
func ofController(t *testing.T, without string) []rbacv1.PolicyRule {
	t.Helper()
	g, role := NewWithT(t), rbacv1.Role{}
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "rbac", "role-controller.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.UnmarshalStrict(content, &role)).To(Succeed())
	for i := range role.Rules {
		role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(verb string) bool { return verb == without })
	}
	return slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
}

func TestRBAC_StopController(t *testing.T) {
	clustertest.Long(t)
	o := open(t).deploy(t, "guarded", "")
	everywhere := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps", "secrets"}, Verbs: []string{"*"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}},
		{APIGroups: []string{o.group()}, Resources: []string{"gadgets"}, Verbs: []string{"*"}},
	}
	for _, test := range []struct {
		user, without string
		outcome       v1alpha1.Outcome
	}{
		{"keeper", "", v1alpha1.Passed},
		{"sees-no-deployment", "get", v1alpha1.Skipped},
		{"stops-nothing", "patch", v1alpha1.Skipped},
		{"sees-no-pods", "list", v1alpha1.Skipped},
	} {
		t.Run(test.user, func(t *testing.T) {
			g := NewWithT(t)
			o.grant(t, test.user, everywhere, ofController(t, test.without))

			outcomes := o.run(t, "--as", test.user, "--label-filter", "operator.controller-stopped", "--procs", "1").outcomes(t)

			g.Expect(outcomes).To(Equal(map[string]v1alpha1.Outcome{"operator.controller-stopped": test.outcome}))
			g.Expect(o.deployed(t)).To(haveAsBefore(1))
		})
	}
}
