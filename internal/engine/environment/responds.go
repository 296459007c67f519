package environment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// ErrCredentials is the error for credentials that the API server no longer accepts.
var ErrCredentials = errors.New("credentials rejected (401)")

// ErrStorage is the error for an API server that responds although its storage does not.
var ErrStorage = errors.New("no response from storage (etcd)")

// responds limits a probe on a fast cluster.
const responds = 5 * time.Second

// Responds returns nil when the API server and its storage respond to the credentials of the run. Otherwise it returns ErrCredentials,
// ErrStorage, or why there was no response. It reads without a resourceVersion, so that the response comes from storage and not from a
// cache. The object need not exist. A rejection for missing permission (403) is a response.
func (e *Environment) Responds(ctx context.Context) error {
	failed := e.respondsTo(ctx, "/api/v1/namespaces/"+e.namespaceOf(1)+"/configmaps/"+leaseName)
	if failed == nil || errors.Is(failed, ErrCredentials) || ctx.Err() != nil || e.respondsTo(ctx, "/version") != nil {
		return failed
	}
	return storageError{failed}
}

// storageError is an ErrStorage that wraps what the read returned.
type storageError struct{ cause error }

func (e storageError) Error() string { return fmt.Sprintf("%v: %v", ErrStorage, e.cause) }

func (e storageError) Unwrap() error { return e.cause }

func (e storageError) Is(other error) bool { return other == ErrStorage }

// respondsTo sends one read.
func (e *Environment) respondsTo(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Slowed(responds))
	defer cancel()
	response := e.client.SendOnce(ctx, client.Request{Method: http.MethodGet, Path: path})
	refused := (*url.Error)(nil)
	switch {
	case apierrors.IsUnauthorized(response.Err):
		return ErrCredentials
	case response.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("HTTP status %d: %w", response.StatusCode, response.Err)
	case response.StatusCode != 0 || response.Err == nil:
		return nil
	case errors.As(response.Err, &refused):
		return refused.Err // without the address, which the caller adds
	}
	return response.Err
}
