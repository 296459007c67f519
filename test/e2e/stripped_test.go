package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestAServerWithoutSomeKindsIsTestedByTheOthers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	kubeconfig := c.behind(t, stripped([]string{"configmaps", "pods", "serviceaccounts"}, []string{"apps", "batch", "apiextensions.k8s.io"}))

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "2", "--label-filter",
		"finalizers.generation-once || graceful.immediate-grace-zero || finalizers.held || options.unknown-dry-run || watch.by-name || /^finalizers\\.dry-run/").wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Skipped)).To(And(
		HaveKeyWithValue("finalizers.generation-once", "the server does not serve ReplicaSet (apps/v1)"),
		HaveKeyWithValue("graceful.immediate-grace-zero", "the server does not serve Pod (v1)"),
		Not(ContainElement(ContainSubstring("ConfigMap")))))
	g.Expect(preflightOf(cluster, "kinds")).To(ConsistOf(And(HaveField("Cause", And(ContainSubstring("ReplicaSet (apps/v1)"), ContainSubstring("Pod (v1)"))),
		HaveField("Effect", Not(BeEmpty())), HaveField("Behaviors", ContainElements("finalizers.generation-once", "graceful.immediate-grace-zero")))))
	announcesSkips(t, cluster)
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(And(HaveKey("finalizers.held"), HaveKey("options.unknown-dry-run"), HaveKey("watch.by-name")))
	g.Expect(resultOf(cluster, "finalizers.held").Timeline.Requests).To(ContainElement(HaveField("Object.Kind", "Secret")))
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

// stripped returns a proxy for a server without these resources of the core group and these groups.
func stripped(resources, groups []string) func(next http.Handler) http.HandlerFunc {
	return func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			segments := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
			switch {
			case segments[0] == "api" && slices.ContainsFunc(segments, func(s string) bool { return slices.Contains(resources, s) }),
				segments[0] == "apis" && len(segments) > 1 && slices.Contains(groups, segments[1]):
				http.NotFound(writer, request)
			case request.URL.Path == "/api/v1":
				filter(writer, request, next, "resources", func(name string) bool {
					name, _, _ = strings.Cut(name, "/")
					return slices.Contains(resources, name)
				})
			case request.URL.Path == "/apis":
				filter(writer, request, next, "groups", func(name string) bool { return slices.Contains(groups, name) })
			default:
				if len(segments) == 1 {
					request.Header.Set("Accept", "application/json") // discovery that is not aggregated
				}
				next.ServeHTTP(writer, request)
			}
		}
	}
}

// filter returns discovery without the elements of a list whose name is hidden.
func filter(writer http.ResponseWriter, request *http.Request, next http.Handler, list string, hidden func(name string) bool) {
	request.Header.Set("Accept", "application/json")
	request.Header.Del("Accept-Encoding")
	response := httptest.NewRecorder()
	next.ServeHTTP(response, request)
	discovered := map[string]any{}
	if err := json.Unmarshal(response.Body.Bytes(), &discovered); err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	elements, _ := discovered[list].([]any)
	discovered[list] = slices.DeleteFunc(elements, func(element any) bool {
		name, _ := element.(map[string]any)["name"].(string)
		return hidden(name)
	})
	content, err := json.Marshal(discovered)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.Header().Set("Content-Length", strconv.Itoa(len(content)))
	writer.WriteHeader(response.Code)
	_, _ = io.Copy(writer, bytes.NewReader(content))
}
