package credentials_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/certificates"
)

// plugin is an exec plugin that returns its credentials one after the other, and the last one again and again.
type plugin struct {
	*testing.T
	dir string
}

func newPlugin(t *testing.T, returned ...clientauthentication.ExecCredentialStatus) plugin {
	t.Helper()
	g := NewWithT(t)
	p := plugin{t, t.TempDir()}
	for i, status := range returned {
		content, err := json.Marshal(clientauthentication.ExecCredential{
			TypeMeta: metav1.TypeMeta{APIVersion: clientauthentication.SchemeGroupVersion.String(), Kind: "ExecCredential"}, Status: &status,
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(p.dir, strconv.Itoa(i+1)), content, 0o600)).To(Succeed())
	}
	g.Expect(os.WriteFile(filepath.Join(p.dir, "login"), []byte(fmt.Sprintf(
		"#!/bin/sh\ncd %s; echo >> calls; n=$(($(wc -l < calls))); while test ! -e $n; do n=$((n-1)); done; cat $n\n", p.dir)), 0o700)).To(Succeed())
	return p
}

func (p plugin) config() *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{
		Command: filepath.Join(p.dir, "login"), APIVersion: clientauthentication.SchemeGroupVersion.String(),
		InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}
}

func (p plugin) calls() int {
	content, err := os.ReadFile(filepath.Join(p.dir, "calls"))
	if err != nil {
		return 0
	}
	return strings.Count(string(content), "\n")
}

func token(token string) clientauthentication.ExecCredentialStatus {
	return clientauthentication.ExecCredentialStatus{Token: token}
}

// expired is a credential that is always renewed.
func expired(of clientauthentication.ExecCredentialStatus) clientauthentication.ExecCredentialStatus {
	of.ExpirationTimestamp = new(metav1.NewTime(time.Now().Add(-time.Minute)))
	return of
}

// server accepts some users, and records which users sent which bodies. A user is that of a token, or of a client certificate.
type server struct {
	*httptest.Server
	accepted func(user string) bool
	sent     []string
}

func serve(t *testing.T, authorities *x509.CertPool) *server {
	t.Helper()
	s := &server{accepted: func(string) bool { return true }}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		user := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
		if peers := request.TLS.PeerCertificates; len(peers) > 0 {
			user += peers[0].Subject.CommonName
		}
		body, _ := io.ReadAll(request.Body)
		s.sent = append(s.sent, strings.TrimSpace(user+" "+string(body)))
		if !s.accepted(user) {
			writer.WriteHeader(http.StatusUnauthorized)
		}
	}))
	s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authorities, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) config(exec *clientcmdapi.ExecConfig) *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, ExecProvider: exec}
}

// post sends a body with the credentials of a configuration, and returns the status code.
func post(t *testing.T, config *rest.Config, body string) int {
	t.Helper()
	g := NewWithT(t)
	transport, err := credentials.TransportFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := (&http.Client{Transport: transport}).Post(config.Host, "text/plain", strings.NewReader(body))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

func TestTransportFor(t *testing.T) {
	authority, err := certificates.New(t.TempDir())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority.Certificate())
	certificate := func(user string) clientauthentication.ExecCredentialStatus {
		pair, err := authority.Client(user)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return clientauthentication.ExecCredentialStatus{ClientCertificateData: string(pair.Certificate), ClientKeyData: string(pair.Key)}
	}
	both := certificate("two")
	both.Token = "one"
	all := func(string) bool { return true }
	not := func(rejected string) func(string) bool { return func(user string) bool { return user != rejected } }
	type returned = []clientauthentication.ExecCredentialStatus
	for name, test := range map[string]struct {
		returned returned
		accepted func(user string) bool
		codes    []int
		sent     []string
		calls    int
	}{
		"a token":                      {returned{token("one"), token("two")}, all, []int{200, 200}, []string{"one 1", "one 2"}, 1},
		"a certificate":                {returned{certificate("one"), certificate("two")}, all, []int{200, 200}, []string{"one 1", "one 2"}, 1},
		"a token and a certificate":    {returned{both}, all, []int{200}, []string{"onetwo 1"}, 1},
		"an expired token":             {returned{expired(token("one")), token("two")}, all, []int{200, 200}, []string{"one 1", "two 2"}, 2},
		"an expired certificate":       {returned{expired(certificate("one")), certificate("two")}, all, []int{200, 200}, []string{"two 1", "two 2"}, 2},
		"a rejected token":             {returned{token("one"), token("two")}, not("one"), []int{200, 200}, []string{"one 1", "two 1", "two 2"}, 2},
		"a rejected certificate":       {returned{certificate("one"), certificate("two")}, not("one"), []int{200, 200}, []string{"one 1", "two 1", "two 2"}, 2},
		"a token that stays rejected":  {returned{token("one")}, not("one"), []int{401}, []string{"one 1"}, 2},
		"a new token that is rejected": {returned{token("one"), token("two")}, func(string) bool { return false }, []int{401}, []string{"one 1", "two 1"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			for by, config := range map[string]func(t *testing.T, config *rest.Config){
				"its own process":   func(*testing.T, *rest.Config) {},
				"another process's": lent,
			} {
				t.Run(by, func(t *testing.T) {
					g := NewWithT(t)
					server, plugin := serve(t, authorities), newPlugin(t, test.returned...)
					server.accepted = test.accepted
					used := server.config(plugin.config())
					config(t, used)
					for i, code := range test.codes {
						g.Expect(post(t, used, strconv.Itoa(i+1))).To(Equal(code))
					}
					g.Expect(server.sent).To(Equal(test.sent))
					g.Expect(plugin.calls()).To(Equal(test.calls))
				})
			}
		})
	}
}

// lent makes a configuration borrow the credentials of its plugin, whose command it no longer has.
func lent(t *testing.T, config *rest.Config) {
	t.Helper()
	lend, err := credentials.Lender(rest.CopyConfig(config))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	config.ExecProvider = config.ExecProvider.DeepCopy()
	config.ExecProvider.Command = "absent"
	credentials.Borrow(config, lend)
}

func TestTransportFor_OtherCredentials(t *testing.T) {
	for name, change := range map[string]func(config *rest.Config) *rest.Config{
		"a token":   func(config *rest.Config) *rest.Config { config.BearerToken = "jane"; return config },
		"anonymous": rest.AnonymousClientConfig,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, plugin := serve(t, nil), newPlugin(t, token("one"))
			config := change(server.config(plugin.config()))
			lend, err := credentials.Lender(config)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(lend).To(BeNil())
			g.Expect(post(t, config, "")).To(Equal(http.StatusOK))
			g.Expect(server.sent).To(Equal([]string{config.BearerToken}))
			g.Expect(plugin.calls()).To(BeZero())
		})
	}
}

func TestTransportFor_Failure(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		change func(*clientcmdapi.ExecConfig)
		want   string
	}{
		"it fails": {"exit 3", nil, "getting credentials: exec: executable .*/login failed with exit code 3: see its output above.*"},
		"it is absent": {"", func(exec *clientcmdapi.ExecConfig) {
			exec.Command, exec.InstallHint = "no-such-plugin", "see\nthe wiki"
		}, `getting credentials: exec: executable no-such-plugin not found: install it, .* \(see the wiki\)`},
		"it greets":      {"echo hello", nil, "getting credentials: decoding stdout: .*: it must print an ExecCredential.*"},
		"it needs input": {"", func(exec *clientcmdapi.ExecConfig) { exec.InteractiveMode = clientcmdapi.AlwaysExecInteractiveMode }, "getting credentials: exec plugin cannot support interactive mode: .*: run the runner in a terminal.*"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, plugin := serve(t, nil), newPlugin(t)
			g.Expect(os.WriteFile(filepath.Join(plugin.dir, "login"), []byte("#!/bin/sh\n"+test.script), 0o700)).To(Succeed())
			config := server.config(plugin.config())
			if test.change != nil {
				test.change(config.ExecProvider)
			}
			transport, err := credentials.TransportFor(config)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = transport.RoundTrip(httptest.NewRequest(http.MethodGet, server.URL, http.NoBody)) //nolint:bodyclose // there is none
			g.Expect(err).To(BeAssignableToTypeOf(credentials.Error{}))
			g.Expect(err.Error()).To(MatchRegexp("^" + test.want + "$"))
			g.Expect(server.sent).To(BeEmpty())
		})
	}
}

func TestEnsure(t *testing.T) {
	g := NewWithT(t)
	server, plugin := serve(t, nil), newPlugin(t, token("one"))
	config := server.config(plugin.config())

	g.Expect(credentials.Ensure(config)).To(Succeed())
	g.Expect(plugin.calls()).To(Equal(1))
	g.Expect(post(t, config, "")).To(Equal(http.StatusOK))
	g.Expect(plugin.calls()).To(Equal(1))

	g.Expect(credentials.Ensure(&rest.Config{Host: server.URL})).To(Succeed(), "without a plugin")
}
