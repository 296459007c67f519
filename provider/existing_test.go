package provider_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/provider"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: a, cluster: {server: "https://127.0.0.1:1"}}
- {name: b, cluster: {server: "https://127.0.0.1:2"}}
contexts:
- {name: one, context: {cluster: a, user: u}}
- {name: two, context: {cluster: b}}
users:
- {name: u, user: {token: secret}}
`

// loaded is the kubeconfig above with a context as its current one.
func loaded(t *testing.T, context string) clientcmd.ClientConfig {
	t.Helper()
	config, err := clientcmd.Load([]byte(twoContexts))
	if err != nil {
		t.Fatal(err)
	}
	config.CurrentContext = context
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{})
}

func TestExistingIsTheClusterOfTheCurrentContext(t *testing.T) {
	for context, host := range map[string]string{"one": "https://127.0.0.1:1", "two": "https://127.0.0.1:2"} {
		g := NewWithT(t)
		existing := provider.NewExisting(loaded(t, context))
		g.Expect(existing.Create(t.Context())).To(BeEmpty(), "the context is from no file")
		g.Expect(existing.GetKubectlContext()).To(Equal(context))
		g.Expect(existing.KubernetesRestConfig().Host).To(Equal(host))
	}
}

func TestExistingReadsAnotherKubeconfig(t *testing.T) {
	g := NewWithT(t)
	kubeconfig := write(t, twoContexts)
	existing := provider.NewExisting(loaded(t, "two"))
	g.Expect(existing.CreateWithConfig(t.Context(), kubeconfig)).To(Equal(kubeconfig))
	g.Expect(existing.GetKubeconfig()).To(Equal(kubeconfig))
	g.Expect(existing.GetKubectlContext()).To(Equal("one"))
}

func TestExistingSaysWhatIsWrong(t *testing.T) {
	g := NewWithT(t)
	_, err := provider.NewExisting(loaded(t, "three")).Create(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("specified context: three")))
	_, err = (&provider.Existing{}).CreateWithConfig(t.Context(), filepath.Join(t.TempDir(), "absent"))
	g.Expect(err).To(MatchError(ContainSubstring("no such file")))
}

func TestExistingSaysThatTheServerIsDead(t *testing.T) {
	g := NewWithT(t)
	existing := provider.NewExisting(loaded(t, "one"))
	g.Expect(existing.WaitForControlPlane(t.Context(), nil)).NotTo(Succeed(), "before Create")
	_, err := existing.Create(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(existing.WaitForControlPlane(t.Context(), nil)).To(MatchError(ContainSubstring("127.0.0.1:1")))
}

func write(t *testing.T, kubeconfig string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
