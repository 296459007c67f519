package environment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// ErrCredentials means that the API server no longer accepts the credentials of the run.
var ErrCredentials = errors.New("credentials rejected (401)")

// Responds is nil when the API server responds to the credentials of the run. Otherwise it is ErrCredentials, or why there was no
// response. Statuses from 502 on are those of a proxy in front of a server that does not respond.
func (e *Environment) Responds(ctx context.Context) error {
	response := e.client.SendOnce(ctx, client.Request{Method: http.MethodGet, Path: "/version"})
	refused := (*url.Error)(nil)
	switch {
	case apierrors.IsUnauthorized(response.Err):
		return ErrCredentials
	case response.StatusCode >= http.StatusBadGateway:
		return fmt.Errorf("HTTP status %d", response.StatusCode)
	case response.StatusCode != 0 || response.Err == nil:
		return nil
	case errors.As(response.Err, &refused):
		return refused.Err // which names the address again otherwise
	}
	return response.Err
}
