package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"
)

// Error is the error of an exec plugin, or of running it.
type Error struct{ message string }

func (e Error) Error() string { return e.message }

// Failed returns the Error that another process has received.
func Failed(message string) Error { return Error{message} }

// plugin is an exec plugin. client-go runs it once for all clients of a process with the same configuration, and again when its credential
// has expired or was rejected.
type plugin struct {
	config    *clientcmdapi.ExecConfig
	transport *transport.Config

	mu      sync.Mutex
	current Credential
}

// Lender returns how a process lends the credentials of a configuration's exec plugin to others; nil where its clients call none.
func Lender(config *rest.Config) (Lend, error) {
	if !usesPlugin(config) {
		return nil, nil //nolint:nilnil // nothing to lend
	}
	plugin, err := pluginOf(config)
	return plugin.lend, err
}

// Ensure runs the exec plugin of a configuration, which may take as long as a user takes to log in, so that later requests do not wait for it.
func Ensure(config *rest.Config) error {
	lend, err := Lender(config)
	if err == nil && lend != nil {
		_, err = lend(0)
	}
	return err
}

func pluginOf(config *rest.Config) (*plugin, error) {
	converted, err := config.TransportConfig()
	return &plugin{config: config.ExecProvider, transport: converted}, err
}

// lend is the plugin's Lend.
func (p *plugin) lend(rejected int) (Credential, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rejected != 0 && rejected == p.current.Number {
		if _, err := p.token(http.StatusUnauthorized); err != nil { // which makes client-go run the plugin again
			return Credential{}, p.failed(err)
		}
	}
	token, err := p.token(http.StatusOK)
	if err != nil {
		return Credential{}, p.failed(err)
	}
	next := Credential{Number: p.current.Number, Token: token}
	if next.Certificate, next.Key, err = p.certificate(); err != nil {
		return Credential{}, p.failed(err)
	}
	if next.Number == 0 || next.Token != p.current.Token || string(next.Certificate) != string(p.current.Certificate) {
		next.Number++
	}
	p.current = next
	return next, nil
}

// token returns the token that client-go adds to a request. The request is not sent, but answered with a status code.
func (p *plugin) token(answer int) (token string, err error) {
	request, err := http.NewRequest(http.MethodGet, "/", http.NoBody) //nolint:noctx // client-go does not cancel plugins
	if err != nil {
		return "", err
	}
	response, err := p.transport.WrapTransport(answering(func(request *http.Request) {
		token = strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
	}, answer)).RoundTrip(request)
	if err != nil {
		return "", err
	}
	return token, response.Body.Close()
}

// answering is a transport that answers each request itself.
func answering(note func(*http.Request), code int) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		note(request)
		return &http.Response{StatusCode: code, Body: http.NoBody, Request: request}, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// certificate returns the client certificate and its key in PEM; nil where the plugin has returned none.
func (p *plugin) certificate() (certificate, key []byte, err error) {
	pair, err := p.transport.TLS.GetCertHolder.GetCert()
	if err != nil || pair == nil {
		return nil, nil, err
	}
	return encoded(pair)
}

func encoded(pair *tls.Certificate) (certificate, key []byte, err error) {
	for _, content := range pair.Certificate {
		certificate = append(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: content})...)
	}
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), err
}

// failed returns the error of the plugin with what to do.
func (p *plugin) failed(err error) Error {
	what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "getting credentials: "), "\n")
	advice := "it must print an ExecCredential: check the user of this context in the kubeconfig with `kubectl auth whoami`"
	switch {
	case strings.Contains(what, "not found"):
		advice = "install it, or correct the command of the user in the kubeconfig"
		if hint := strings.Join(strings.Fields(p.config.InstallHint), " "); hint != "" {
			advice += " (" + hint + ")"
		}
	case strings.Contains(what, "failed with exit code"):
		advice = "see its output above, and log in again if it asks for that; `kubectl auth whoami` runs the same command"
	case strings.Contains(what, "interactive mode"):
		advice = "run the runner in a terminal, or use credentials that require no login"
	}
	return Error{fmt.Sprintf("getting credentials: %s: %s", what, advice)}
}
