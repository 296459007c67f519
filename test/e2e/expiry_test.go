package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// boundToken returns a token of a ServiceAccount that is bound to a Secret.
func (c *cluster) boundToken(t *testing.T, account, secret string) string {
	t.Helper()
	g := NewWithT(t)
	bound, err := c.CoreV1().Secrets(metav1.NamespaceDefault).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	request, err := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: secret, UID: bound.UID,
		}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return request.Status.Token
}

// withTokenFile returns a kubeconfig with a token file.
func (c *cluster) withTokenFile(t *testing.T, file string) string {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.LoadFromFile(c.withoutCredentials(t))
	g.Expect(err).NotTo(HaveOccurred())
	config.AuthInfos["nobody"].TokenFile = file
	content, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	return write(t, string(content))
}

func TestCredentials_Rotated(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	run, ended := c.runWhoseTokenEnds(t, "rotated", 3, func(put func(token string)) { put(c.boundToken(t, "rotated", "rotated-new")) })

	g.Expect(reasons(ended.cluster(t), v1alpha1.Failed)).To(BeEmpty(), "no behavior fails for it")
	g.Expect(ended.code).To(Equal(0))
	g.Expect(reasons(ended.cluster(t), v1alpha1.Passed)).To(HaveLen(3))
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
}

func TestCredentials_Expired(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	// One behavior finds the credentials rejected when it starts.
	run, ended := c.runWhoseTokenEnds(t, "expired", 2, func(func(string)) {})

	cluster := ended.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Failed)).To(BeEmpty(), "no behavior fails for it")
	g.Expect(ended.code).To(Equal(3))
	g.Expect(reasons(cluster, v1alpha1.Errored)).To(And(HaveLen(3), HaveEach(HavePrefix("credentials rejected (401) since "))), "one cause")
	g.Expect(cluster.Problem).To(HavePrefix("credentials rejected (401) since "))
	g.Expect(cluster.LeftBehind).To(And(HavePrefix("credentials rejected (401) since "), ContainSubstring("runner cleanup --run "+run)))
	g.Expect(start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", c.admin(t, "after-expiry"), "--run", run).wait().code).To(Equal(0))
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
}

// runWhoseTokenEnds runs three behaviors with the token of an account, which is replaced and then revoked while objects are held.
func (c *cluster) runWhoseTokenEnds(t *testing.T, account string, workers int, replace func(put func(token string))) (run string, ended outcome) {
	t.Helper()
	g := NewWithT(t)
	c.token(t, account)
	file := filepath.Join(t.TempDir(), "token")
	put := func(token string) { g.Expect(os.WriteFile(file, []byte(token), 0o600)).To(Succeed()) }
	put(c.boundToken(t, account, account+"-old"))
	// The API server accepts a token that it has accepted before for up to 10 s more.
	ran := startRun(t, "--kubeconfig", c.withTokenFile(t, file), "--procs", strconv.Itoa(workers), "--label-filter", holding, "--settle", "15s")
	run = c.awaitHeld(t, "system:serviceaccount:default:"+account, workers)
	replace(put)
	g.Expect(c.CoreV1().Secrets(metav1.NamespaceDefault).Delete(t.Context(), account+"-old", metav1.DeleteOptions{})).To(Succeed())
	return run, ran.wait()
}
