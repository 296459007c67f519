package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	deploymentPath = "/apis/apps/v1/namespaces/widgets/deployments/operator"
	rolesPath      = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
)

// nothingLeft is what a server answers on which no run left anything but a Deployment that it scaled to 0.
var nothingLeft = map[string]string{
	"/version": `{"gitVersion":"v1.36.3"}`,
	"/api":     `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis": `{"kind":"APIGroupList","groups":[
		{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]},
		{"name":"rbac.authorization.k8s.io","versions":[{"groupVersion":"rbac.authorization.k8s.io/v1","version":"v1"}]}]}`,
	"/api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace","verbs":["list","delete"]}]}`,
	"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["get"]}]}`,
	"/apis/rbac.authorization.k8s.io/v1": `{"kind":"APIResourceList","groupVersion":"rbac.authorization.k8s.io/v1","resources":[
		{"name":"clusterroles","kind":"ClusterRole","verbs":["list","delete"]}]}`,
	"/api/v1/namespaces": `{"apiVersion":"v1","kind":"NamespaceList","items":[]}`,
	rolesPath:            `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleList","items":[]}`,
	deploymentPath: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"operator","namespace":"widgets","resourceVersion":"1",
		"labels":{"deletion-conformance.github.io/stopped-by":"dcx7k2p9q4","deletion-conformance.github.io/replicas":"2"}},"spec":{"replicas":0}}`,
}

// cleaned runs a cleanup on a server that fails requests with these codes, by method and path. It returns the writes that the server received.
func cleaned(t *testing.T, failures map[string]int, arguments ...string) (code int, said string, writes []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		what := request.Method + " " + request.URL.Path
		if request.Method != http.MethodGet {
			writes = append(writes, what)
		}
		answer, known := nothingLeft[request.URL.Path]
		failure := failures[what]
		if !known {
			failure = http.StatusNotFound
		}
		if failure != 0 {
			writer.WriteHeader(failure)
			reason := map[int]string{http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound", http.StatusBadRequest: "BadRequest"}[failure]
			answer = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"not today"}`, failure, reason)
		}
		_, _ = fmt.Fprint(writer, answer)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: there,
		clusters: [{name: there, cluster: {server: %q}}], contexts: [{name: there, context: {cluster: there}}]}`, server.URL), 0o600)).To(Succeed())
	var out, errOut bytes.Buffer
	code = Main(append([]string{"cleanup", "--kubeconfig", kubeconfig}, arguments...), strings.NewReader(""), &out, &errOut)
	return code, out.String() + errOut.String(), writes
}

func TestCleanup_StoppedController(t *testing.T) {
	named := []string{"--run", "dcx7k2p9q4", "--controller", "deploy/operator", "--controller-namespace", "widgets"}
	for name, test := range map[string]struct {
		failures map[string]int
		code     int
		said     string
		writes   []string
	}{
		"nothing else is left":         {nil, ExitPassed, "removing run dcx7k2p9q4 from there", []string{"PATCH " + deploymentPath}},
		"it cannot be read":            {map[string]int{"GET " + deploymentPath: http.StatusForbidden}, ExitUntested, `read Deployment "operator" in namespace "widgets": `, nil},
		"there is none with this name": {map[string]int{"GET " + deploymentPath: http.StatusNotFound}, ExitUntested, `read Deployment "operator" in namespace "widgets": `, nil},
		"it cannot be scaled": {
			map[string]int{"PATCH " + deploymentPath: http.StatusForbidden}, ExitRunError, `scale Deployment "operator" in namespace "widgets": `, []string{"PATCH " + deploymentPath},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			code, said, writes := cleaned(t, test.failures, named...)
			g.Expect(code).To(Equal(test.code), said)
			g.Expect(said).To(ContainSubstring(test.said))
			g.Expect(writes).To(Equal(test.writes))
		})
	}
	t.Run("only listed", func(t *testing.T) {
		code, said, writes := cleaned(t, nil, append(named, "--dry-run")...)
		NewWithT(t).Expect(code).To(BeZero(), said)
		NewWithT(t).Expect(writes).To(BeEmpty())
	})
}

func TestCleanup_UnreadIsNotAbsent(t *testing.T) {
	for failure, test := range map[int]struct {
		code int
		said string
	}{
		0:                     {ExitPassed, "no leftovers on there"},
		http.StatusForbidden:  {ExitPassed, "could not be listed, and may contain more leftovers:"},
		http.StatusBadRequest: {ExitRunError, "could not be listed, and may contain more leftovers:"},
	} {
		t.Run(fmt.Sprint(failure), func(t *testing.T) {
			g := NewWithT(t)
			code, said, _ := cleaned(t, map[string]int{"GET " + rolesPath: failure})
			g.Expect(code).To(Equal(test.code), said)
			g.Expect(said).To(ContainSubstring(test.said))
			g.Expect(strings.Contains(said, "no leftovers on there")).To(Equal(failure == 0), said)
		})
	}
	t.Run("beside other leftovers", func(t *testing.T) {
		code, said, _ := cleaned(t, map[string]int{"GET " + rolesPath: http.StatusBadRequest}, "--run", "dcx7k2p9q4",
			"--controller", "deploy/operator", "--controller-namespace", "widgets", "--dry-run")
		NewWithT(t).Expect(code).To(Equal(ExitRunError), said)
	})
	t.Run("an API that does not respond", func(t *testing.T) {
		code, said, _ := cleaned(t, map[string]int{"GET /apis/rbac.authorization.k8s.io/v1": http.StatusBadRequest})
		NewWithT(t).Expect(code).To(BeZero(), said)
		NewWithT(t).Expect(said).To(ContainSubstring(`API "rbac.authorization.k8s.io/v1" cannot be discovered`))
	})
}
