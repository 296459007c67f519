// Package aggregation provides an aggregated API that does not respond at first and is then served by the harness.
package aggregation

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/exposure"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/webhookserver"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// API is an aggregated API of one spec. It has no resources.
type API struct {
	// Service is its APIService.
	Service *framework.Object

	// serve makes it respond.
	serve func(context.Context)
}

// Register registers an aggregated API that does not respond, because its Service does not exist yet. It skips the spec where a
// Service cannot name this machine.
func Register(ctx context.Context, c *framework.Cluster) *API {
	ginkgo.GinkgoHelper()
	host := c.Session().WebhookHost
	if c.Session().WebhookService {
		return registerBehindService(ctx, c)
	}
	if problems := validation.IsDNS1123Subdomain(host); len(problems) > 0 {
		ginkgo.Skip(fmt.Sprintf("no Service can name %s: name a host or an IPv4 address (--webhook-host)", host))
	}
	backend := fixtures.ExternalService("aggregated", host)
	named := exposure.Service{Namespace: c.Namespace(), Name: c.FreeName(backend.GetName())}
	server, err := webhookserver.Start(named.Host(), host, answering(c))
	if err != nil {
		ginkgo.Skip(fmt.Sprintf("%v: name an address of this machine (--webhook-host)", err))
	}
	ginkgo.DeferCleanup(server.Close)
	service := c.Create(ctx, backedBy(c, named.Name, server.Port(), server.ClientConfig().CABundle))
	return &API{Service: service, serve: func(ctx context.Context) {
		ginkgo.GinkgoHelper()
		external := c.Create(ctx, backend)
		gomega.Eventually(ctx, c.History(service)).Should(framework.HaveObserved(
			framework.Matching(service, gomega.Or(framework.HaveCondition(available), requireEndpoints()))))
		if matched, err := requireEndpoints().Match(c.Get(ctx, service)); err != nil || !matched {
			return
		}
		c.Delete(ctx, external)
		framework.AwaitDeleted(ctx, c, external)
		port := int32(server.Port()) //nolint:gosec // a port
		expose(ctx, c, exposure.Service{
			Namespace: c.Namespace(), Name: external.GetName(), Labels: c.Session().Labels(), Address: host, Port: port, TargetPort: port,
		})
	}}
}

// available is the condition of an APIService whose API responds.
const available = "Available"

// requireEndpoints matches the APIService of an API server that connects to the endpoints of Services (--enable-aggregator-routing of
// kube-apiserver), so that Services of the type ExternalName are refused (ResolveEndpoint in k8s.io/apiserver/pkg/util/proxy).
func requireEndpoints() types.GomegaMatcher {
	return framework.Property("need endpoints", func(object *framework.Object) bool {
		condition := meta.FindStatusCondition(describe.Conditions(object), available)
		return condition != nil && strings.Contains(condition.Message, "unsupported service type")
	})
}

// expose creates a Service with endpoints until the spec ends. The spec is skipped if that is refused.
func expose(ctx context.Context, c *framework.Cluster, service exposure.Service) {
	ginkgo.GinkgoHelper()
	remove, err := service.Create(ctx, c.Session().Harness)
	if err != nil {
		ginkgo.Skip(fmt.Sprintf("the Service of an aggregated API cannot be created: %v", err))
	}
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { remove(ctx) })
}

// registerBehindService registers an aggregated API in a pod, which the API server reaches through a Service of the run.
func registerBehindService(ctx context.Context, c *framework.Cluster) *API {
	ginkgo.GinkgoHelper()
	own := c.Session()
	exposed := exposure.Service{Namespace: c.Namespace(), Name: c.FreeName("aggregated"), Labels: own.Labels(), Address: own.WebhookHost}
	server, err := webhookserver.Start(exposed.Host(), own.WebhookHost, answering(c))
	if err != nil {
		ginkgo.Skip(fmt.Sprintf("%v: set POD_IP to the address of the pod", err))
	}
	ginkgo.DeferCleanup(server.Close)
	exposed.TargetPort = int32(server.Port()) //nolint:gosec // a port
	service := c.Create(ctx, backedBy(c, exposed.Name, exposure.Port, server.ClientConfig().CABundle))
	return &API{Service: service, serve: func(ctx context.Context) {
		ginkgo.GinkgoHelper()
		expose(ctx, c, exposed)
	}}
}

// backedBy returns the APIService of a Service, whose server has a certificate of the CA.
func backedBy(c *framework.Cluster, name string, port int64, ca []byte) *framework.Object {
	service := fixtures.APIService(c.Group(), c.Namespace())
	framework.WithField(name, "spec", "service", "name")(service)
	framework.WithField(port, "spec", "service", "port")(service)
	framework.WithField(base64.StdEncoding.EncodeToString(ca), "spec", "caBundle")(service)
	return service
}

// Serve creates the Service, so that the API responds.
func (a *API) Serve(ctx context.Context) {
	ginkgo.GinkgoHelper()
	a.serve(ctx)
}

// answering answers /openapi/v3 with the API version of the spec, and everything else as discovery does.
func answering(c *framework.Cluster) http.Handler {
	version := "apis/" + c.Group() + "/v1"
	described := map[string]any{"paths": map[string]any{version: map[string]any{"serverRelativeURL": "/openapi/v3/" + version + "?hash=1"}}}
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/openapi/v3" {
			write(answer, described)
			return
		}
		discovery(answer, request)
	})
}

// discovery answers /apis/GROUP/VERSION with an API version that has no resources, and everything else with 404.
func discovery(answer http.ResponseWriter, request *http.Request) {
	elements := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(elements) != 3 || elements[0] != "apis" {
		http.NotFound(answer, request)
		return
	}
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: elements[1] + "/" + elements[2], APIResources: []metav1.APIResource{},
	}
	write(answer, list)
}

// write writes an answer as JSON.
func write(answer http.ResponseWriter, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	_, _ = answer.Write(content)
}
