package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/framework"
)

// kubeconfig returns a kubeconfig with one context, "there", for a server.
func kubeconfig(server string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: there
clusters: [{name: there, cluster: {server: %q}}]
contexts: [{name: there, context: {cluster: there, user: me}}]
users: [{name: me, user: {token: hunter2}}]
`, server)
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// deadServer returns an address that does not respond.
func deadServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return "https://" + listener.Addr().String()
}

// silentServer returns an address that accepts connections and sends nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "https://" + listener.Addr().String()
}

// website returns a server that is not Kubernetes.
func website(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "text/html")
		writer.WriteHeader(status)
		_, _ = fmt.Fprint(writer, "<!DOCTYPE html>\n<html>\n<body>\n<h1>It works!</h1>\n</body>\n</html>\n")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// madeBinaries returns a directory with an etcd and an API server with a file mode, which only print their version.
func madeBinaries(t *testing.T, mode os.FileMode, version string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+version+"\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInvalidInput(t *testing.T) {
	t.Parallel()
	there := write(t, kubeconfig("https://127.0.0.1:1"))
	absent := filepath.Join(t.TempDir(), "absent")
	for _, test := range []struct {
		name      string
		arguments []string
		want      []string
	}{
		{"no cluster", nil, []string{"no cluster specified", "--kubeconfig FILE", "--context NAME", "--provider embedded", "--provider kind"}},
		{"a kubeconfig that is missing", []string{"--kubeconfig", absent}, []string{absent, "no such file"}},
		{"an empty kubeconfig", []string{"--kubeconfig", write(t, "")}, []string{"has no contexts"}},
		{"a malformed kubeconfig", []string{"--kubeconfig", write(t, "kind: [")}, []string{"read kubeconfig"}},
		{"an unknown context", []string{"--kubeconfig", there, "--context", "elsewhere"}, []string{`no context "elsewhere"`, "it has there"}},
		{"a context twice", []string{"--kubeconfig", there, "--kubeconfig", there}, []string{`two clusters have the name "there"`}},
		{"a typing mistake in a suite", []string{"--kubeconfig", there, "--suite", "gracious"}, []string{`unknown suite "gracious"`, "cascade, "}},
		{"a filter that matches nothing", []string{"--kubeconfig", there, "--label-filter", "cascade.no-such"}, []string{"no behavior has the label", "cascade.no-such"}},
		{"a focus that matches nothing", []string{"--kubeconfig", there, "--focus", "no such text"}, []string{"matches none of the", "no such text"}},
		{"an invalid regular expression", []string{"--kubeconfig", there, "--focus", "("}, []string{`--focus "("`, "regular expression"}},
		{"an invalid label filter", []string{"--kubeconfig", there, "--label-filter", "core &&"}, []string{`--label-filter "core &&"`}},
		{"an unknown provider", []string{"--provider", "minikube"}, []string{`unknown provider "minikube"`, "embedded"}},
		{"an embedded cluster and another", []string{"--provider", "embedded", "--context", "there"}, []string{"--provider embedded and --context are mutually exclusive"}},
		{"an embedded cluster and a server", []string{"--provider", "embedded", "--server", "https://127.0.0.1:1"}, []string{"--provider embedded and --server are mutually exclusive"}},
		{"an embedded cluster and a mirror", []string{"--provider", "embedded", "--image-registry", "mirror.example"}, []string{"--image-registry are mutually exclusive"}},
		{"an empty resource", []string{"--kubeconfig", there, "--resource", ""}, []string{"--resource must not be empty"}},
		{"a list of resources with a blank", []string{"--kubeconfig", there, "--resource", "leases, secrets"}, []string{`--resource " secrets"`, "widgets.example.com/v1"}},
		{"a controller of no resource", []string{"--kubeconfig", there, "--controller", "deploy/x", "--controller-namespace", "y"}, []string{"--controller requires exactly one --resource", "--resource"}},
		{"a controller of several resources", []string{"--kubeconfig", there, "--resource", "a,b", "--controller", "deploy/x", "--controller-namespace", "y"}, []string{"--controller requires exactly one --resource", "--resource"}},
		{"a controller of all resources", []string{"--kubeconfig", there, "--all-resources", "--controller", "deploy/x", "--controller-namespace", "y"}, []string{"--controller requires exactly one --resource", "--resource"}},
		{"a controller without its type", []string{"--kubeconfig", there, "--resource", "a", "--controller", "x", "--controller-namespace", "y"}, []string{`controller "x" has no type`, "deploy/x"}},
		{"a controller that is no Deployment", []string{"--kubeconfig", there, "--resource", "a", "--controller", "sts/x", "--controller-namespace", "y"}, []string{`controller "sts/x"`, "deploy/NAME"}},
		{"a controller in no namespace", []string{"--kubeconfig", there, "--resource", "a", "--controller", "deploy/x"}, []string{"--controller deploy/x requires --controller-namespace"}},
		{"a namespace of no controller", []string{"--kubeconfig", there, "--resource", "a", "--controller-namespace", "y"}, []string{"--controller-namespace requires --controller"}},
		{"a node on somebody's cluster", []string{"--kubeconfig", there, "--nodes", "1"}, []string{"--nodes", "--provider embedded"}},
		{"a node without controllers", []string{"cluster", "up", "--without-controllers", "--nodes", "1"}, []string{"--without-controllers", "--nodes 1"}},
		{"binaries that are missing", []string{"--provider", "embedded", "--kubernetes-binaries", absent}, []string{"no etcd in " + absent, "make build", "--kubernetes-binaries"}},
		{"binaries that may not be executed", []string{"--provider", "embedded", "--kubernetes-binaries", madeBinaries(t, 0o600, "Kubernetes v1.36.3")}, []string{"etcd is not executable", "permission denied"}},
		{"binaries of no known version", []string{"--provider", "embedded", "--kubernetes-binaries", madeBinaries(t, 0o700, "v0.0.0-master")}, []string{"kube-apiserver prints no version", `"v0.0.0-master"`}},
		{"binaries and a version", []string{"--provider", "embedded", "--kubernetes-binaries", absent, "--kubernetes-version", "1.34.4"}, []string{"--kubernetes-binaries and --kubernetes-version are mutually exclusive"}},
		{"a node without a controller manager", []string{"--provider", "embedded", "--kubernetes-binaries", madeBinaries(t, 0o700, "Kubernetes v1.36.3"), "--nodes", "1"}, []string{"--nodes 1", "no kube-controller-manager in"}},
		{"binaries of somebody's cluster", []string{"--kubeconfig", there, "--kubernetes-binaries", absent}, []string{"--kubernetes-binaries", "--provider embedded"}},
		{"an unknown source of Kubernetes", []string{"--provider", "embedded", "--kubernetes-source", "downlod"}, []string{`--kubernetes-source "downlod"`, "auto, download or build", "download"}},
		{"a mirror that is a URL", []string{"--provider", "embedded", "--kubernetes-mirror", "https://registry.example.com"}, []string{`mirror "https://registry.example.com"`, "HOST[:PORT][/PATH]"}},
		{"a version that is not one", []string{"--provider", "embedded", "--kubernetes-version", "1.34"}, []string{`"1.34" is not a version of Kubernetes`, "1.34.4"}},
		{"a kind cluster of a missing configuration", []string{"--provider", "kind", "--kind-config", absent}, []string{"configuration of a kind cluster", absent, "no such file"}},
		{"a kind cluster of another configuration", []string{"--provider", "kind", "--kind-config", there}, []string{"configuration of a kind cluster", there, "current-context"}},
		{"a kind cluster of an empty configuration", []string{"--provider", "kind", "--kind-config", write(t, "")}, []string{"`kind: Cluster`", "kind.x-k8s.io/v1alpha4"}},
		{"a kind cluster of an invalid image", []string{"--provider", "kind", "--kind-image", "kindest/node:v1:2"}, []string{`"kindest/node:v1:2"`, "write it as in"}},
		{"a kind cluster of an invalid version", []string{"--provider", "kind", "--kubernetes-version", "one two"}, []string{`"kindest/node:vone two"`, "write it as in"}},
		{"a kind cluster of an image and a version", []string{"--provider", "kind", "--kind-image", "a", "--kubernetes-version", "1.35.0"}, []string{"--kind-image and --kubernetes-version are mutually exclusive"}},
		{"a kind cluster of an invalid name", []string{"--provider", "kind", "--cluster-name", "Mine"}, []string{`"Mine"`, "lower case"}},
		{"a kind cluster and another", []string{"--provider", "kind", "--context", "there"}, []string{"--provider kind and --context are mutually exclusive"}},
		{"a kind cluster with the embedded one's node", []string{"--provider", "kind", "--nodes", "1"}, []string{"--nodes", "--provider embedded"}},
		{"an embedded cluster of kind's image", []string{"--provider", "embedded", "--kind-image", "kindest/node:v1.35.0"}, []string{"--kind-image", "--provider kind"}},
		{"somebody's cluster that is to be kept", []string{"--kubeconfig", there, "--keep-cluster"}, []string{"--keep-cluster", "--provider kind"}},
		{"a version of somebody's cluster", []string{"--kubeconfig", there, "--kubernetes-version", "1.35.0"}, []string{"--kubernetes-version", "--provider embedded or --provider kind"}},
		{"a mirror with a scheme", []string{"--kubeconfig", there, "--image-registry", "https://mirror.example"}, []string{`"https://mirror.example" is not a registry`}},
		{"a list of images from a mirror with a space", []string{"list", "--images", "--image-registry", "mirror example"}, []string{`"mirror example" is not a registry`}},
		{"a label without a value", []string{"--kubeconfig", there, "--label", "team"}, []string{`--label "team"`, "KEY=VALUE"}},
		{"a label with an invalid key", []string{"--kubeconfig", there, "--label", "a team=x"}, []string{"--label: Invalid value", `"a team"`}},
		{"a label with an invalid value", []string{"--kubeconfig", there, "--label", "team=x y"}, []string{"--label: Invalid value", `"x y"`}},
		{"a label given twice", []string{"--kubeconfig", there, "--label", "team=x", "--label", "team=y"}, []string{"--label team", "different values"}},
		{"a label of the runner's own", []string{"--kubeconfig", there, "--label", framework.Domain + "/run=x"}, []string{"--label " + framework.Domain + "/run", "the runner's own"}},
		{"an annotation with an invalid key", []string{"--kubeconfig", there, "--annotation", "/x=y"}, []string{"--annotation: Invalid value", `"/x"`}},
		{"a label of namespaces with an invalid value", []string{"--kubeconfig", there, "--namespace-label", "a=-"}, []string{"--namespace-label: Invalid value", `"-"`}},
		{"a pod overlay that is missing", []string{"--kubeconfig", there, "--pod-overlay", absent}, []string{"--pod-overlay " + absent, "no such file"}},
		{"a pod overlay that is no object", []string{"--kubeconfig", there, "--pod-overlay", write(t, "[a]")}, []string{"--pod-overlay", "it is not an object"}},
		{"a pod overlay of no pod", []string{"--kubeconfig", there, "--pod-overlay", write(t, "spec: {replicas: 2}")}, []string{"--pod-overlay", "not a patch of a pod", "spec.replicas"}},
		{"a pod overlay that changes the grace", []string{"--kubeconfig", there, "--pod-overlay", write(t, "spec: {terminationGracePeriodSeconds: 2}")}, []string{"spec.terminationGracePeriodSeconds", "grace periods are tested"}},
		{"a label for a fixture with an invalid key", []string{"fixture", "--kubeconfig", there, "--label", "a team=x", "configmaps"}, []string{"--label: Invalid value"}},
		{"known failures that are missing", []string{"--kubeconfig", there, "--known-failures", absent}, []string{"--known-failures " + absent + ": no such file"}},
		{"a known failure of an unknown behavior", []string{"--kubeconfig", there, "--known-failures", write(t, "- {id: finalizers.hold, reason: a}")}, []string{"entry 1 (finalizers.hold): unknown behavior", `did you mean "finalizers.held"?`}},
		{"an unknown flag", []string{"--kubeconfg", there}, []string{"unknown flag: --kubeconfg", "--help"}},
		{"a flag without its value", []string{"--kubeconfig"}, []string{"needs an argument", "--kubeconfig"}},
		{"an unknown command", []string{"lst"}, []string{`"lst"`, `"list"`}},
		{"an argument", []string{"list", "everything"}, []string{`"everything"`}},
		{"a kubectl that is missing", []string{"--kubeconfig", there, "--kubectl", absent}, []string{"run kubectl " + absent, "no such file"}},
		{"a kubectl that may not be executed", []string{"--kubeconfig", there, "--kubectl", there}, []string{"run kubectl " + there, "permission denied"}},
		{"a kubectl that is none", []string{"--kubeconfig", there, "--kubectl", "/bin/true"}, []string{"/bin/true", "it is not kubectl"}},
		{"no process", []string{"--kubeconfig", there, "--procs", "0"}, []string{"--procs must be greater than zero"}},
		{"no time", []string{"--kubeconfig", there, "--timeout", "0s"}, []string{"--timeout must be greater than zero"}},
		{"a collector without a scheme", []string{"--kubeconfig", there, "--otlp-endpoint", "localhost:4318"}, []string{`--otlp-endpoint: "localhost:4318" is not the URL of a collector`, "http://localhost:4318"}},
		{"a collector with a password", []string{"--kubeconfig", there, "--otlp-endpoint", "http://me:hunter3@localhost:4318"}, []string{"--otlp-endpoint", "OTEL_EXPORTER_OTLP_HEADERS"}},
		{"an exploration that reduces for less than no time", []string{"explore", "--kubeconfig", there, "--reduce-for", "-1s"}, []string{"--reduce-for must not be negative"}},
		{"an exploration as a trace", []string{"explore", "--kubeconfig", there, "--otlp-endpoint", "http://localhost:4318"}, []string{"unknown flag: --otlp-endpoint"}},
		{"a plugin outside of Sonobuoy", []string{"--kubeconfig", there, "--sonobuoy"}, []string{"--sonobuoy: SONOBUOY_RESULTS_DIR is not set", "deploy/sonobuoy"}},
		{"a plugin with another report folder", []string{"--kubeconfig", there, "--sonobuoy", "--report-dir", "out"}, []string{"--sonobuoy and --report-dir are mutually exclusive"}},
		{"a plugin in a Job that stores its report", []string{"--kubeconfig", there, "--sonobuoy", "--store-report"}, []string{"--sonobuoy and --store-report are mutually exclusive"}},
		{"an exploration as a plugin", []string{"explore", "--kubeconfig", there, "--sonobuoy"}, []string{"unknown flag: --sonobuoy"}},
		{"a report folder that is a file", []string{"--kubeconfig", there, "--report-dir", there}, []string{"--report-dir", there}},
		{"a list in an unknown form", []string{"list", "-o", "yaml"}, []string{"yaml", "json"}},
		{"a cleanup of a missing kubeconfig", []string{"cleanup", "--kubeconfig", absent}, []string{absent, "no such file"}},
		{"a cleanup of a run, nowhere", []string{"cleanup", "--run", "dcsomething"}, []string{"no cluster specified"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ran := start(t, emptyEnvironment(t), test.arguments...).wait()
			g.Expect(ran.code).To(Equal(2))
			for _, want := range test.want {
				g.Expect(ran.errOut).To(ContainSubstring(want))
			}
			if !strings.Contains(ran.errOut, "no cluster specified") { // a longer explanation
				g.Expect(strings.Count(ran.errOut, "\n")).To(Equal(1), "one line")
			}
			g.Expect(ran.errOut).To(HavePrefix("runner: "))
			g.Expect(ran.errOut).NotTo(ContainSubstring("goroutine"))
			g.Expect(ran.took).To(BeNumerically("<", 30*time.Second), "it waits 10 s for an answer")
		})
	}
}

func TestKubeconfig_DefaultUntouched(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "at-home"
	content, err := os.ReadFile(c.admin(t, user))
	g.Expect(err).NotTo(HaveOccurred())
	home := t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(home, ".kube"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(home, ".kube", "config"), content, 0o600)).To(Succeed())
	environment := append(emptyEnvironment(t), "HOME="+home)

	unasked := start(t, environment, "--suite", "finalizers").wait()
	g.Expect(unasked.code).To(Equal(2))
	g.Expect(unasked.errOut).To(ContainSubstring("no cluster specified"))
	g.Expect(c.requests(t, user)).To(BeEmpty(), "not one request")

	asked := start(t, environment, "--context", "embedded", "--label-filter", "finalizers.held").wait()
	g.Expect(asked.code).To(Equal(0), "the file itself is good, where a context of it is named")
	g.Expect(c.requests(t, user)).NotTo(BeEmpty())
}

func TestRun_UnusableServers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, server, want string }{
		{"a dead server", deadServer(t), "connection refused"},
		{"a silent server", silentServer(t), "127.0.0.1"},
		{"a website", website(t, http.StatusOK), "(200) is not that of a Kubernetes API server"},
		{"a website that knows no such page", website(t, http.StatusNotFound), "(404) is not that of a Kubernetes API server"},
		{"a website behind a login", website(t, http.StatusForbidden), "(403) is not that of a Kubernetes API server"},
		{"a website that is down", website(t, http.StatusServiceUnavailable), "(503) is not that of a Kubernetes API server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ran := startRun(t, "--kubeconfig", write(t, kubeconfig(test.server))).wait()

			g.Expect(ran.code).To(Equal(3))
			g.Expect(ran.took).To(BeNumerically("<", time.Minute), "10 s, and what a busy machine adds")
			said := ran.out + ran.errOut
			g.Expect(said).To(And(ContainSubstring(test.want), ContainSubstring(`cluster "there"`)))
			g.Expect(said).NotTo(Or(ContainSubstring("goroutine"), ContainSubstring("<html>"), ContainSubstring("hunter2")))
			g.Expect(strings.Count(strings.TrimSpace(said), "\n")).To(BeNumerically("<=", 2), "one line says it, two where the reports are and the count")
			cluster := ran.cluster(t)
			g.Expect(cluster.Problem).To(ContainSubstring(test.want))
			g.Expect(cluster.Problem).NotTo(ContainSubstring("\n"))

			swept := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", write(t, kubeconfig(test.server))).wait()
			g.Expect(swept.code).To(Equal(3))
			g.Expect(strings.Count(strings.TrimSpace(swept.errOut), "\n")).To(Equal(0), "one line")
		})
	}
}
