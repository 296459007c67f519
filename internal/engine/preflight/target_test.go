package preflight

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// asking returns a client of a server with a handler, and the number of its requests.
func asking(t *testing.T, handler http.HandlerFunc) (*client.Client, *atomic.Int32) {
	t.Helper()
	config, asked := apiservertest.Start(t, handler)
	connected, err := client.New(config, client.NewGuard("dcx7k2p9q4"))
	if err != nil {
		t.Fatal(err)
	}
	return connected, asked
}
