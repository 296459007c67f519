package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// named matches the paths of the objects whose deletion an indiscreet server refuses.
var named = regexp.MustCompile(`/(configmaps|secrets)/[^/]+$`)

// indiscreet returns a server that refuses deletions, and echoes requests and more in its refusals.
func indiscreet(echoed string) func(next http.Handler) http.HandlerFunc {
	return func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if request.Method != http.MethodDelete || !named.MatchString(request.URL.Path) {
				next.ServeHTTP(writer, request)
				return
			}
			writer.Header().Set("Content-Type", "application/json")
			writer.Header().Set("Warning", fmt.Sprintf("299 - %q", request.Header.Get("Authorization")))
			writer.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(writer).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
				Message: "refused to " + request.Header.Get("Authorization") + ": " + echoed,
			})
		}
	}
}

// canaries are secrets of a user, by kind.
func (c *cluster) canaries(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	own, err := clientcmd.LoadFromFile(c.admin(t, "canary"))
	g.Expect(err).NotTo(HaveOccurred())
	secret, _, err := unstructured.NestedString(fixtures.Secret("secret").Object, "stringData", "value")
	g.Expect(err).NotTo(HaveOccurred())
	canaries := map[string]string{
		"token": "canary-token-4f7c", "password of the server's URL": "canary-letmein",
		"password of the plugin": "canary-plugin", "variable": "canary-environment",
		"a Secret's value": secret, "a Secret's value, encoded": base64.StdEncoding.EncodeToString([]byte(secret)),
	}
	for _, user := range own.AuthInfos {
		canaries["key"] = base64.StdEncoding.EncodeToString(user.ClientKeyData)
		canaries["certificate"] = base64.StdEncoding.EncodeToString(user.ClientCertificateData)
		canaries["line of the key"] = strings.Split(string(user.ClientKeyData), "\n")[1]
	}
	return canaries
}

// withCanaries adds canaries to a kubeconfig.
func withCanaries(t *testing.T, file string, canaries map[string]string) string {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.LoadFromFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	decoded := func(canary string) []byte {
		content, err := base64.StdEncoding.DecodeString(canaries[canary])
		g.Expect(err).NotTo(HaveOccurred())
		return content
	}
	for _, server := range config.Clusters {
		address, err := url.Parse(server.Server)
		g.Expect(err).NotTo(HaveOccurred())
		address.User = url.UserPassword("joe", canaries["password of the server's URL"])
		server.Server = address.String()
	}
	const user = "canary-user"
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		Token: canaries["token"], ClientKeyData: decoded("key"), ClientCertificateData: decoded("certificate"),
	}
	server := config.Contexts[config.CurrentContext].Cluster
	config.Contexts = map[string]*clientcmdapi.Context{"canary-context": {Cluster: server, AuthInfo: user}}
	config.CurrentContext = "canary-context"
	content, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	return write(t, string(content))
}

func TestReport_Redacted(t *testing.T) {
	t.Parallel()
	c := shared.in(t)
	canaries := c.canaries(t)
	environment := append(emptyEnvironment(t), "CANARY="+canaries["variable"])
	_, home, _ := strings.Cut(environment[1], "=")
	echoed := strings.Join([]string{
		canaries["key"], canaries["certificate"], canaries["password of the server's URL"], "https://joe:hidden@host/", home + "/path-of-a-host",
	}, ", ")
	kubeconfig := withCanaries(t, c.throughProxy(t, indiscreet(echoed)), canaries)
	for _, flags := range [][]string{nil, {"--redact"}} {
		t.Run(strings.Join(append([]string{"run"}, flags...), " "), func(t *testing.T) {
			g := NewWithT(t)
			ran := startRunIn(t, environment, append(flags, "--kubeconfig", kubeconfig, "--verbose", "--procs", "2", "--label-filter",
				"finalizers.held || finalizers.immutable-objects || graceful.token-of-removed-object || graceful.immediate-grace-zero")...)
			seen := ran.commandLinesOfWorkers()
			ended := ran.wait()

			g.Expect(ended.code).To(Equal(1))
			g.Expect(reasons(ended.cluster(t), v1alpha1.Failed)).NotTo(BeEmpty(), "something to tell of")
			said := ended.outputs(t)
			g.Expect(said).To(HaveLen(7))
			g.Expect(said["report.json"]).To(And(ContainSubstring("refused to Basic [redacted]"), ContainSubstring("/path-of-a-host")))
			said["command lines"] = strings.Join(seen(), "\n")
			forbidden := []string{"hidden@", home + "/", "Bearer"}
			if flags != nil {
				forbidden = append(forbidden, "canary-context", "canary-user", "127.0.0.1")
				g.Expect(ended.cluster(t).Name).To(Equal("cluster-1"))
			}
			for _, canary := range canaries {
				forbidden = append(forbidden, canary)
			}
			for where, text := range said {
				for _, canary := range forbidden {
					g.Expect(strings.Contains(text, canary)).To(BeFalse(), "%s in %s", canary, where)
				}
			}
			g.Expect(c.mentioning(t, ended.report(t).RunID)).To(BeEmpty())
		})
	}
}

// failingPlugin is a credential plugin that prints a secret and fails.
const failingPlugin = "echo \"the password is $LOGIN_PASSWORD\" >&2\nexit 1\n"

func TestReport_CredentialPlugin(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	kubeconfig := c.withPlugin(t, failingPlugin, clientcmdapi.ExecEnvVar{Name: "LOGIN_PASSWORD", Value: "canary-plugin"})
	config, err := clientcmd.LoadFromFile(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	plugin := config.AuthInfos["nobody"].Exec.Command

	ended := startRun(t, "--kubeconfig", kubeconfig, "--verbose").wait()

	g.Expect(strings.Count(ended.errOut, "the password is")).To(Equal(1), "it runs once")
	g.Expect(ended.out).NotTo(ContainSubstring("unreachable"))
	g.Expect(ended.cluster(t).Problem).To(MatchRegexp("^getting credentials: exec: executable .* failed with exit code 1: see its output above"))
	g.Expect(ended.code).To(Equal(3))
	said := ended.outputs(t)
	delete(said, "standard error") // from the plugin itself, which client-go passes through, as kubectl does
	for where, text := range said {
		g.Expect(strings.Contains(text, "canary-plugin")).To(BeFalse(), where)
		g.Expect(strings.Contains(text, plugin)).To(BeFalse(), where)
	}
}
