package client

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

const deployments, secrets = "/apis/apps/v1/namespaces/shared/deployments", "/api/v1/namespaces/shared/secrets"

// server is what the run shares with others: some of their objects have copied labels.
var server = foreignServer{
	Run: ownRun,
	Objects: []foreignObject{
		{Collection: classes, Name: "public", Labels: labels.Set{"a": "b"}},
		{Collection: classes, Name: "a-" + ownRun, Labels: labels.Set{RunLabel: ownRun}},
		{Collection: "/api/v1/nodes", Name: "copied", Labels: labels.Set{RunLabel: ownRun}},
		{Collection: "/api/v1/namespaces/shared/configmaps", Name: "copied", Labels: labels.Set{RunLabel: ownRun, "a": "b"}},
		{Collection: "/api/v1/namespaces/shared/configmaps", Name: ownRun + "-own", Labels: labels.Set{RunLabel: ownRun}},
	},
	Excepted: []string{deployments + "/controller"}, Created: map[string]string{secrets + "/password": "u1"},
}

// guardOf is a guard for the server, which lists its objects.
func guardOf(server foreignServer) *Guard {
	guard := NewGuard(server.Run)
	for _, path := range server.Excepted {
		guard.excepted[path] = true
	}
	for path := range server.Created {
		guard.noteCreated(path, "u1")
	}
	guard.read = func(_ context.Context, request Request) Response {
		items := []any{}
		for _, name := range server.Selected(request.Path, request.Query) {
			items = append(items, map[string]any{"metadata": map[string]any{"name": name}})
		}
		return Response{Object: &Object{Object: map[string]any{"kind": "List", "apiVersion": "v1", "items": items}}}
	}
	return guard
}

// sendTo sends a request through a guard, and fails when the server could change something of others for it.
func sendTo(t *testing.T, request *http.Request) (sent bool) {
	t.Helper()
	transport := guardOf(server).guarded(roundTripper(func(request *http.Request) (*http.Response, error) {
		sent = true
		wire := &bytes.Buffer{}
		if err := request.Write(wire); err != nil {
			return nil, err
		}
		received, err := http.ReadRequest(bufio.NewReader(wire))
		if err != nil {
			return httptest.NewRecorder().Result(), nil //nolint:nilerr // the server refuses it
		}
		body, err := io.ReadAll(received.Body)
		if err != nil {
			t.Error(err)
		}
		if changed := server.Changes(received, body); changed != "" {
			t.Errorf("%s\n%s", changed, wire)
		}
		return httptest.NewRecorder().Result(), nil
	}), "")
	response, err := transport.RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return sent
}

// requestOf returns a request with a header in the form "Name: value"; nil if it is malformed.
func requestOf(method, target, rawPath, header, body string) *http.Request {
	request, err := http.NewRequest(method, "http://server"+target, strings.NewReader(body)) //nolint:noctx // it is not sent
	if err != nil || request.URL.Host != "server" {
		return nil
	}
	request.URL.RawPath = rawPath
	if name, value, ok := strings.Cut(header, ": "); ok {
		request.Header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	return request
}

// FuzzGuard sends any request.
func FuzzGuard(f *testing.F) {
	for _, target := range []string{
		"/api/v1/namespaces/" + ownNamespace + "/pods/a/exec", "/api/v1/namespaces/shared/configmaps/copied", "/apis/shop.example.com/v1/previews",
		"/apis/shop.example.com/v1/namespaces/shared/productreviews/x", "/api/v1/namespaces/shared/configmaps/top-reviews",
		"/api/v1/namespaces/shared/services/https:payments:443/proxy", "/api/v1/namespaces/shared/pods/db-0:8080/proxy",
		"/api/v1/namespaces/shared/bindings", "/api/v1/namespaces/shared/configmaps?labelSelector=" + RunLabel + "%3D" + ownRun,
		"/api/v1/namespaces/shared/configmaps/copied?dryRun=All", deployments + "/controller/scale", secrets + "/password", secrets, classes,
		"/api/v1/namespaces/" + ownNamespace + "/../shared/configmaps/copied", "/api/v1/namespaces/" + ownNamespace + "%2F..%2Fshared/pods/a",
		"/api/v1/proxy/namespaces/shared/services/payments", "/api/v1/nodes/?labelSelector=" + RunLabel + "%3D" + ownRun,
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			f.Add(method, target, "", "X-HTTP-Method-Override: DELETE", "")
			f.Add(method, target, "", "Content-Type: application/json", `{"dryRun":["All"],"DRYRUN":[],"preconditions":{"uid":"u1"}}`)
			f.Add(method, target, "/api/v1/nodes", "", `{"metadata":{"name":"`+ownRun+`-a","Name":"db-0","generateName":"x","uid":"u1"}}`)
		}
	}
	f.Fuzz(func(t *testing.T, method, target, rawPath, header, body string) {
		if request := requestOf(method, target, rawPath, header, body); request != nil {
			sendTo(t, request)
		}
	})
}

// TestGuard_GeneratedRequests sends requests that are put together from what matters to the guard. A request is sent for the run's objects often
// enough that the guard does not refuse all.
func TestGuard_GeneratedRequests(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	sent := 0
	const requests = 100_000
	for range requests {
		if request := generated(random); request != nil && sendTo(t, request) {
			sent++
		}
		if t.Failed() {
			return
		}
	}
	if sent < requests/20 || sent > requests*19/20 {
		t.Errorf("%d of %d requests were sent", sent, requests)
	}
}

// generated returns a random request; nil if it is malformed.
func generated(random *rand.Rand) *http.Request {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	rarely := func(of string) string {
		if random.IntN(12) > 0 {
			return ""
		}
		return of
	}
	name := func() string {
		return pick("copied", "public", "a-"+ownRun, ownRun+"-own", "a"+ownRun, "https:payments:443", "https:a-"+ownRun+":443", "db-0:8080", "password",
			"controller", "top-reviews", "..", ".", "%2e%2e", "a%2Fb", "A-"+strings.ToUpper(ownRun), "a%25"+ownRun, ownRun+";x", "default")
	}
	path := pick("/api/v1", "/apis/apps/v1", "/apis/networking.k8s.io/v1", "/apis/shop.example.com/v1", "/apis/authorization.k8s.io/v1", "/API/v1", "")
	path += rarely(pick("/watch", "/proxy", "/proxy/nodes", "/", "/.."))
	path += pick("", "/namespaces/"+ownNamespace, "/namespaces/shared", "/namespaces/shared", "/namespaces/", "/namespaces/"+ownRun+"x")
	path += "/" + pick("configmaps", "pods", "nodes", "secrets", "services", "deployments", "ingressclasses", "bindings", "namespaces", "previews", "productreviews",
		"selfsubjectaccessreviews", "logs")
	if random.IntN(4) > 0 {
		path += "/" + name()
		if random.IntN(3) == 0 {
			path += "/" + pick("status", "scale", "finalize", "proxy", "exec", "eviction", "binding", "token", "log", "console", "proxy/a/../b", name())
		}
	}
	path += rarely(pick("/", "//", "/../x", "%2F..", "%00"))
	var query []string
	for range random.IntN(3) {
		query = append(query, pick("dryRun=All", "dryRun=All", "dryRun=", "dryRun=all", "DryRun=All", "limit=2", "resourceVersion=1", "continue=x",
			"labelSelector="+RunLabel+"%3D"+ownRun, "labelSelector="+RunLabel+"%3D"+ownRun, "labelSelector=a%3Db", "labelSelector=", "a;dryRun=All",
			"fieldSelector=metadata.name%3Dpublic", "labelSelector="+RunLabel+"%3D"+ownRun+"%2Ca%21%3Db", "labelSelector="+RunLabel))
	}
	field := func(name, value string) string {
		text := fmt.Sprintf("%q:%s", pick(name, name, name, strings.ToUpper(name[:1])+name[1:], strings.ToUpper(name)), value)
		if random.IntN(8) == 0 {
			text += "," + text
		}
		return text
	}
	all := pick(`["All"]`, `["All"]`, `[]`, `["All","All"]`, `"All"`)
	meta := field("metadata", "{"+field("name", `"`+name()+`"`)+rarely(","+field("generateName", `"`+pick(ownRun+"-", ownRun, "x-", strings.Repeat("y", 52)+"-"+ownRun+"-")+`"`))+
		rarely(","+field("uid", `"u1"`))+rarely(","+field("name", `"db-0"`))+"}")
	body := pick("", "{"+field("dryRun", all)+rarely(","+field("dryRun", "[]"))+"}", "{"+meta+rarely(","+meta)+"}", "{"+field("preconditions", "{"+field("uid", pick(`"u1"`, `"u2"`))+"}")+"}",
		"metadata: {name: "+ownRun+"-a}", "[]", "{", `{"metadata":{"generateName":"`+ownRun+`-"}}`, `{"metadata":{"uid":"u1"}}`, `{"metadata":{"name":"`+ownRun+`-a"}}`)
	header := pick("", "Content-Type: application/json", "Content-Type: application/json; charset=utf-8", "Content-Type: application/yaml",
		"Content-Type: application/merge-patch+json", "Content-Type: application/cbor", "X-HTTP-Method-Override: DELETE", "X-Method-Override: PUT")
	request := requestOf(pick("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "DELETE", "delete", "CONNECT", "TRACE"),
		path+"?"+strings.Join(query, "&"), rarely(pick(path, "/api/v1/nodes")), header, body)
	if request != nil && random.IntN(20) == 0 {
		request.URL.Opaque = pick("//server/api/v1/nodes/copied", "/api/v1/nodes/copied")
	}
	return request
}
