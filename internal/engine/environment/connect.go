package environment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
)

// ErrUnreachable is the error for a cluster that did not respond or did not accept the credentials.
var ErrUnreachable = errors.New("cluster unreachable")

// guardOf returns the guard of a run. In the namespace that the user named, it permits the two objects with names of the project.
func guardOf(run, shared string, settings session.Settings) *client.Guard {
	guard := client.NewGuard(run)
	settings.Except(guard)
	if shared != "" {
		guard.Except(client.Collection{Resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Namespace: shared}, leaseName)
		guard.Except(client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), Namespace: shared},
			fixtures.ServiceAccount().GetName())
	}
	return guard
}

// Reach fails with ErrUnreachable when no API server responds within 10 seconds, or when it rejects the credentials.
func Reach(ctx context.Context, config *rest.Config) error {
	_, err := reach(ctx, config)
	return err
}

// reach connects to a cluster that responds. The client may not write.
func reach(ctx context.Context, config *rest.Config) (*client.Client, error) {
	connected, err := client.New(config, client.NewGuard(""))
	if err != nil {
		return nil, err
	}
	if _, err := serverVersion(ctx, connected); err != nil {
		return nil, unreachable(config, err)
	}
	return connected, nil
}

// unreachable names the server, the cause and the remedy.
func unreachable(config *rest.Config, err error) error {
	if failed := (credentials.Error{}); errors.As(err, &failed) {
		return withoutCredentials{failed}
	}
	advice := "check that it runs, and that this is its address"
	if apierrors.IsUnauthorized(err) {
		advice = "check that they have not expired"
	}
	return fmt.Errorf("%w: %s: %w; %s", ErrUnreachable, config.Host, err, advice)
}

// withoutCredentials is an ErrUnreachable because of the exec plugin of the credentials: nothing was sent to the server.
type withoutCredentials struct{ error }

func (withoutCredentials) Is(other error) bool { return other == ErrUnreachable }

// reachable limits how long a cluster may take to return its version.
const reachable = 10 * time.Second

func serverVersion(ctx context.Context, from *client.Client) (string, error) {
	if err := from.Authenticate(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, reachable)
	defer cancel()
	response := getVersion(ctx, from)
	if apierrors.IsUnauthorized(response.Err) {
		return "", fmt.Errorf("the server does not accept the credentials of this context (401): %w", response.Err)
	}
	if errors.Is(response.Err, context.DeadlineExceeded) {
		return "", fmt.Errorf("no response within %s", reachable)
	}
	if refused := (*url.Error)(nil); errors.As(response.Err, &refused) {
		return "", refused.Err // without the address, which the caller adds
	}
	info := apiversion.Info{}
	if _ = json.Unmarshal(response.Body, &info); response.Err == nil && info.GitVersion != "" {
		return info.GitVersion, nil
	}
	if status := response.Object; response.StatusCode != 0 && (response.Err == nil || status == nil || status.GetKind() != "Status") {
		return "", fmt.Errorf("GET /version: the response (%d) is not that of a Kubernetes API server", response.StatusCode)
	}
	if apierrors.IsForbidden(response.Err) { // the version is not needed
		return "", nil
	}
	return "", response.Err
}

// attempts is how often the version is requested from a server that accepts connections.
const attempts = 4

// getVersion requests the server's version. It retries while a second is left, unless the server cannot be connected to.
func getVersion(ctx context.Context, from *client.Client) client.Response {
	var response client.Response
	for range attempts {
		response = from.SendOnce(ctx, client.Request{Method: http.MethodGet, Path: "/version"})
		deadline, limited := ctx.Deadline()
		if response.Authoritative() || client.NeverConnected(response.Err) || limited && time.Until(deadline) < time.Second {
			break
		}
	}
	return response
}
