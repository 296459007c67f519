package kubectl

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// shell returns a session's commands with a shell instead of kubectl, and the requests that the API server received.
func shell(t *testing.T) (commands *Commands, seen func() []*http.Request) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var mu sync.Mutex
	var requests []*http.Request
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, request)
		if request.URL.Path == usersOwn {
			_, _ = io.WriteString(writer, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"absent","namespace":"users"}}`)
			return
		}
		writer.WriteHeader(http.StatusNotFound)
	})
	config.BearerToken = "of-the-run"
	connected, err := client.New(config, client.NewGuard("dcb2c4d5f6"))
	if err != nil {
		t.Fatal(err)
	}
	commands = &Commands{Binary: Binary{Path: "/bin/sh"}, Run: "dctest", Recorded: connected, Harness: connected}
	t.Cleanup(commands.Close)
	return commands, func() []*http.Request {
		mu.Lock()
		defer mu.Unlock()
		return requests
	}
}

// usersOwn is the path of an object that no run has created, and ownOf that of one in a namespace of the run.
const (
	usersOwn = "/api/v1/namespaces/users/configmaps/absent"
	ownOf    = "/api/v1/namespaces/dcb2c4d5f6-1/configmaps/one"
)

// ask requests the deletion of a ConfigMap from the proxy, with a token.
func ask(t *testing.T, kubeconfig *clientcmdapi.Config, token string) int {
	t.Helper()
	return askFor(t, kubeconfig, token, ownOf+"?dryRun=All")
}

// askFor is ask for the ConfigMap at a path.
func askFor(t *testing.T, kubeconfig *clientcmdapi.Config, token, path string) int {
	t.Helper()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(kubeconfig.Clusters["proxy"].CertificateAuthorityData)
	asking := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	body := bytes.NewBufferString(`{"gracePeriodSeconds":3}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete,
		kubeconfig.Clusters["proxy"].Server+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := asking.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestProxy_Tokens(t *testing.T) {
	g := NewWithT(t)
	commands, seen := shell(t)
	command, err := commands.Start(t.Context(), &Gate{}, "dcb2c4d5f6-1", "", "-c", "exec sleep 60")
	g.Expect(err).NotTo(HaveOccurred())
	info, err := os.Stat(command.kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
	kubeconfig, err := clientcmd.LoadFromFile(command.kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	token := kubeconfig.AuthInfos["proxy"].Token

	g.Expect(ask(t, kubeconfig, "")).To(Equal(http.StatusUnauthorized))
	g.Expect(ask(t, kubeconfig, "of-the-run")).To(Equal(http.StatusUnauthorized))
	g.Expect(seen()).To(BeEmpty())
	g.Expect(ask(t, kubeconfig, token)).To(Equal(http.StatusNotFound))

	g.Expect(seen()).To(HaveLen(1))
	g.Expect(seen()[0].Header.Values("Authorization")).To(ConsistOf("Bearer of-the-run"), "the credentials of the run, and not kubectl's")
	g.Expect(command.Requests()).To(ConsistOf(And(
		HaveField("Name", "one"), HaveField("StatusCode", http.StatusNotFound), HaveField("Object.Kind", "ConfigMap"),
		HaveField("Options.GracePeriodSeconds", HaveValue(BeEquivalentTo(3))))))

	command.kill()
	g.Expect(ask(t, kubeconfig, token)).To(Equal(http.StatusUnauthorized), "a token goes with its command")
	g.Expect(command.kubeconfig).NotTo(BeAnExistingFile())
}

func TestProxy_ForeignObjects(t *testing.T) {
	g := NewWithT(t)
	commands, seen := shell(t)
	command, err := commands.Start(t.Context(), &Gate{}, "dcb2c4d5f6-1", "", "-c", "exec sleep 60")
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := clientcmd.LoadFromFile(command.kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	token := kubeconfig.AuthInfos["proxy"].Token

	// As kubectl requests it, and by a path through a namespace of the run. The body overrides the dry-run.
	for _, path := range []string{usersOwn, usersOwn + "?dryRun=All", "/api/v1/namespaces/dcb2c4d5f6-1/../users/configmaps/absent", usersOwn + "/"} {
		g.Expect(askFor(t, kubeconfig, token, path)).To(Equal(http.StatusBadGateway), path)
	}

	for _, request := range seen() {
		g.Expect(request.Method).To(Equal(http.MethodGet), "nothing but looks is sent")
	}
	g.Expect(command.Requests()).To(HaveEach(HaveField("NotSent", HaveOccurred())))
	g.Expect(command.Requests()[0].NotSent).To(MatchError(ContainSubstring(`refusing to delete configmaps "absent" in namespace "users"`)))
}

func TestCommand_CleanEnvironment(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com")
	t.Setenv("KUBECTL_EXTERNAL_DIFF", "diff")
	commands, _ := shell(t)

	command, err := commands.Start(t.Context(), &Gate{}, "dcb2c4d5f6-1", "what is read", "-c", "env; cat; exit 3")
	g.Expect(err).NotTo(HaveOccurred())
	result := command.Result()

	g.Expect(result.ExitCode).To(Equal(3))
	g.Expect(result.Stdout).To(And(ContainSubstring("KUBECONFIG="+command.kubeconfig), HaveSuffix("what is read")))
	g.Expect(result.Stdout).NotTo(Or(ContainSubstring("proxy.example.com"), ContainSubstring("KUBECTL_")))
}

func TestCommands_Close(t *testing.T) {
	g := NewWithT(t)
	commands, _ := shell(t)
	_, err := commands.MakeFolder()
	g.Expect(err).NotTo(HaveOccurred())
	command, err := commands.Start(t.Context(), &Gate{}, "dcb2c4d5f6-1", "", "-c", "exec sleep 60")
	g.Expect(err).NotTo(HaveOccurred())

	commands.Close()

	g.Expect(command.Ended()).To(BeClosed())
	g.Expect(command.Result().ExitCode).To(Equal(-1))
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())
	_, err = commands.Start(t.Context(), &Gate{}, "dcb2c4d5f6-1", "", "-c", "true")
	g.Expect(err).To(MatchError(errClosed))
}

func TestGate_Delay(t *testing.T) {
	g := NewWithT(t)
	gate := &Gate{}
	get, remove := Request{Request: client.Request{Method: http.MethodGet}}, Request{Request: client.Request{Method: http.MethodDelete}}
	gate.Delay(func(request Request) bool { return request.Method == http.MethodGet })
	g.Expect(gate.pass(t.Context(), remove)).To(Succeed())
	passed := make(chan error, 1)
	go func() { passed <- gate.pass(t.Context(), get) }()

	g.Consistently(passed).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
	gate.Release()
	g.Eventually(passed).Should(Receive(BeNil()))
	g.Expect(gate.pass(t.Context(), get)).To(Succeed(), "nothing is held back any more")
}

func TestGate_Fail(t *testing.T) {
	g := NewWithT(t)
	commands, seen := shell(t)
	gate := &Gate{}
	gate.Fail(func(request Request) bool { return request.Method == http.MethodDelete })
	command, err := commands.Start(t.Context(), gate, "dcb2c4d5f6-1", "", "-c", "exec sleep 60")
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := clientcmd.LoadFromFile(command.kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	token := kubeconfig.AuthInfos["proxy"].Token

	g.Expect(ask(t, kubeconfig, token)).To(Equal(http.StatusInternalServerError))
	g.Expect(seen()).To(BeEmpty())
	g.Expect(command.Requests()).To(ConsistOf(HaveField("StatusCode", 0)), "the server has not answered")
	gate.Release()
	g.Expect(ask(t, kubeconfig, token)).To(Equal(http.StatusNotFound))
}

func TestGate_Prefix(t *testing.T) {
	g := NewWithT(t)
	commands, seen := shell(t)
	command, err := commands.Start(t.Context(), &Gate{Prefix: "/clusters/one"}, "dcb2c4d5f6-1", "", "-c", "exec sleep 60")
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := clientcmd.LoadFromFile(command.kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	token := kubeconfig.AuthInfos["proxy"].Token
	g.Expect(kubeconfig.Clusters["proxy"].Server).To(HaveSuffix("/clusters/one"))

	g.Expect(ask(t, kubeconfig, token)).To(Equal(http.StatusNotFound))
	g.Expect(seen()).To(ConsistOf(HaveField("URL.Path", ownOf)), "the server does not see the prefix")
	kubeconfig.Clusters["proxy"].Server = commands.proxy.url
	g.Expect(ask(t, kubeconfig, token)).To(Equal(http.StatusNotFound))
	g.Expect(seen()).To(HaveLen(1), "without the prefix there is no API")
}
