package clusters

import (
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Noting makes the clients of a configuration call a function with each new value of the header Authorization, before it is sent. It must
// be called before others wrap the transport, so that theirs are seen.
func Noting(config *rest.Config, note func(authorization string)) {
	var seen sync.Map
	config.WrapTransport = transport.Wrappers(func(next http.RoundTripper) http.RoundTripper {
		return noting{next, func(authorization string) {
			if _, known := seen.LoadOrStore(authorization, true); !known {
				note(authorization)
			}
		}}
	}, config.WrapTransport)
}

type noting struct {
	http.RoundTripper
	note func(authorization string)
}

// RoundTrip notes the credentials of a request and sends it.
func (n noting) RoundTrip(request *http.Request) (*http.Response, error) {
	for _, authorization := range request.Header.Values("Authorization") {
		n.note(authorization)
	}
	return n.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper returns the next transport, for those who close its connections.
func (n noting) WrappedRoundTripper() http.RoundTripper { return n.RoundTripper }
