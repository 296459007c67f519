// Package credentials authenticates requests. An exec plugin, which may open a browser, runs once for all processes of a run: the runner's
// process runs it, by client-go, and lends the credential to its workers.
package credentials

import (
	"net/http"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Credential is what an exec plugin has returned.
type Credential struct {
	// Number counts the credentials of a plugin, from 1.
	Number int    `json:"number"`
	Token  string `json:"token,omitempty"`
	// Certificate and Key are in PEM.
	Certificate []byte `json:"certificate,omitempty"`
	Key         []byte `json:"key,omitempty"`
}

// Lend returns the current credential, and a new one where it has the number of one that a server has rejected; 0 for none. It fails with an
// [Error].
type Lend func(rejected int) (Credential, error)

// Borrow makes the clients of a configuration use lent credentials instead of its exec plugin. It has no effect where there is none.
func Borrow(config *rest.Config, lend Lend) {
	if config.ExecProvider != nil {
		config.ExecProvider.Config = lender{lend}
	}
}

// lender travels in a configuration where client-go has a place for data of the plugin, so that clients without the plugin do not borrow.
type lender struct{ lend Lend }

func (lender) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (l lender) DeepCopyObject() runtime.Object { return l }

// usesPlugin reports whether clients of a configuration call its plugin: other credentials take precedence, as in client-go.
func usesPlugin(config *rest.Config) bool {
	other := config.BearerToken != "" || config.BearerTokenFile != "" || config.Username != "" || config.CertFile != "" || len(config.CertData) > 0
	return config.ExecProvider != nil && !other
}

// TransportFor returns the transport of a configuration, as client-go does. It also sends a request that the server rejected for its
// credentials (401) once more where there are new ones.
func TransportFor(config *rest.Config) (http.RoundTripper, error) {
	if usesPlugin(config) {
		return newBorrower(config)
	}
	transport, err := rest.TransportFor(config)
	if err == nil && config.BearerTokenFile != "" {
		return renewing{tokenFile{transport, config.BearerTokenFile}}, nil
	}
	return transport, err
}

// source is where a transport gets its credentials.
type source interface {
	// current returns the transport with the current credentials, and renewed the one after these were rejected; nil where there is none.
	current() (http.RoundTripper, error)
	renewed(rejected http.RoundTripper) http.RoundTripper
}

// renewing is the transport with the credentials of a source.
type renewing struct{ source }

// RoundTrip sends a request, and once more with new credentials if the first ones were rejected.
func (r renewing) RoundTrip(request *http.Request) (*http.Response, error) {
	transport, err := r.current()
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized || request.Body != nil && request.GetBody == nil {
		return response, err
	}
	next := r.renewed(transport)
	if next == nil {
		return response, nil
	}
	again := request.Clone(request.Context())
	if request.GetBody != nil {
		if again.Body, err = request.GetBody(); err != nil {
			return response, nil //nolint:nilerr // the refusal stands
		}
	}
	_ = response.Body.Close()
	return next.RoundTrip(again)
}

// tokenFile has the token of a file. client-go reads it once a minute, and the token may have been rotated since.
type tokenFile struct {
	http.RoundTripper
	path string
}

func (f tokenFile) current() (http.RoundTripper, error) { return f.RoundTripper, nil }

func (f tokenFile) renewed(http.RoundTripper) http.RoundTripper {
	token, err := os.ReadFile(f.path)
	if err != nil {
		return nil
	}
	return withToken{f.RoundTripper, strings.TrimSpace(string(token))}
}

// withToken sends requests with a token.
type withToken struct {
	next  http.RoundTripper
	token string
}

func (w withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(request)
}

// borrower has the credentials of a lender.
type borrower struct {
	config *rest.Config
	lend   Lend

	mu   sync.Mutex
	last borrowed
}

// borrowed is the transport with one credential. Requests that began with an earlier one keep their connections.
type borrowed struct {
	http.RoundTripper
	number int
}

func newBorrower(config *rest.Config) (http.RoundTripper, error) {
	b := &borrower{config: config}
	if from, ok := config.ExecProvider.Config.(lender); ok {
		b.lend = from.lend
		return renewing{b}, nil
	}
	plugin, err := pluginOf(config)
	b.lend = plugin.lend
	return renewing{b}, err
}

func (b *borrower) current() (http.RoundTripper, error) { return b.with(0) }

func (b *borrower) renewed(rejected http.RoundTripper) http.RoundTripper {
	before, _ := rejected.(borrowed)
	renewed, err := b.with(before.number)
	if err != nil || renewed.number == before.number {
		return nil
	}
	return renewed
}

// with returns the transport with the credential that is current after one was rejected.
func (b *borrower) with(rejected int) (borrowed, error) {
	credential, err := b.lend(rejected)
	if err != nil {
		return borrowed{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if credential.Number == b.last.number {
		return b.last, nil
	}
	config := rest.CopyConfig(b.config)
	config.ExecProvider, config.BearerToken = nil, credential.Token
	config.CertData, config.KeyData = credential.Certificate, credential.Key
	transport, err := rest.TransportFor(config)
	if err != nil {
		return borrowed{}, err
	}
	b.last = borrowed{transport, credential.Number}
	return b.last, nil
}
