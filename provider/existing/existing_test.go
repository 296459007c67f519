package existing_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/existing"
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

// loaded returns the kubeconfig above with a current context.
func loaded(t *testing.T, context string) clientcmd.ClientConfig {
	t.Helper()
	config, err := clientcmd.Load([]byte(twoContexts))
	if err != nil {
		t.Fatal(err)
	}
	config.CurrentContext = context
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{})
}

func TestNew_CurrentContext(t *testing.T) {
	for context, host := range map[string]string{"one": "https://127.0.0.1:1", "two": "https://127.0.0.1:2"} {
		g := NewWithT(t)
		cluster, err := existing.New(loaded(t, context))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.RESTConfig().Host).To(Equal(host))
	}
}

func TestNew_UnknownContext(t *testing.T) {
	_, err := existing.New(loaded(t, "three"))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("specified context: three")))
}

func TestFeatures_EmbeddedKubeconfig(t *testing.T) {
	g := NewWithT(t)
	config, err := clientcmd.Load([]byte(twoContexts))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(component.WriteSocket(config.Clusters["a"], "/run/components.sock")).To(Succeed())
	content, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	config, err = clientcmd.Load(content)
	g.Expect(err).NotTo(HaveOccurred())
	for overrides, socket := range map[*clientcmd.ConfigOverrides]string{
		{}:                      "/run/components.sock",
		{CurrentContext: "one"}: "/run/components.sock",
		{CurrentContext: "two"}: "",
		{ClusterInfo: clientcmdapi.Cluster{Server: "https://127.0.0.1:3"}}: "",
	} {
		cluster, err := existing.New(clientcmd.NewDefaultClientConfig(*config, overrides))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.Features().Components).To(Equal(socket), "%+v", overrides)
	}
}
