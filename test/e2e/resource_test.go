package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

const widgets, racks = "widgets.fixture.example.com", "racks.fixture.example.com"

// columnsOf returns the clusters of a report by resource.
func columnsOf(whole v1alpha1.Report) map[string]v1alpha1.Cluster {
	columns := map[string]v1alpha1.Cluster{}
	for _, cluster := range whole.Clusters {
		columns[cluster.Resource] = cluster
	}
	return columns
}

func TestResource(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	objects := c.define(t, "resources.yaml")

	ran := startRun(t, "--kubeconfig", c.admin(t, "resources"), "--resource", widgets+",leases,"+racks+"/v1,absent.example.com",
		"--label-filter", `/^permission/ || /^finalizers\.(held|dry-run|preconditions|quota-counts-until-removal)$/`).wait()

	g.Expect(ran.code).To(Equal(3), "of one nothing could be tested")
	whole := ran.report(t)
	columns := columnsOf(whole)
	g.Expect(columns).To(HaveLen(4))
	g.Expect(columns["absent.example.com"].Problem).To(ContainSubstring("the server does not serve it"))
	for _, resource := range []string{widgets, "leases", racks + "/v1"} {
		column := columns[resource]
		g.Expect(column.Name).To(HaveSuffix(" " + resource))
		g.Expect(reasons(column, v1alpha1.Failed)).To(BeEmpty(), resource)
		g.Expect(reasons(column, v1alpha1.Errored)).To(BeEmpty(), resource)
		g.Expect(reasons(column, v1alpha1.Passed)).To(
			And(HaveKey("finalizers.held"), HaveKey("finalizers.dry-run"), HaveKey("finalizers.preconditions")), resource)
		g.Expect(reasons(column, v1alpha1.Filtered)).To(HaveKeyWithValue("finalizers.quota-counts-until-removal", ContainSubstring("--resource")))
	}
	g.Expect(reasons(columns[racks+"/v1"], v1alpha1.Skipped)).To(
		HaveKeyWithValue("permission.dry-run", ContainSubstring("racks.fixture.example.com are cluster-scoped")))
	g.Expect(reasons(columns[widgets], v1alpha1.Passed)).To(HaveKey("permission.separate-verbs"))
	for _, request := range resultOf(columns[widgets], "finalizers.held").Timeline.Requests {
		g.Expect(request.Object.Kind).To(Equal("Widget"))
	}
	left, err := objects.Resource(schema.GroupVersionResource{Group: "fixture.example.com", Version: "v1", Resource: "racks"}).
		List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left.Items).To(BeEmpty(), "what is cluster-scoped is removed, too")
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())

	named := startRun(t, "--kubeconfig", c.admin(t, "racks"), "--resource", racks, "--label-filter", "options.yaml-body || admission.review-content").wait()
	g.Expect(reasons(named.cluster(t), v1alpha1.Passed)).To(
		And(HaveKey("options.yaml-body"), HaveKey("admission.review-content")), "what these specs name is named by the run, too")
}

func TestAllResources(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	deleteNew(t, c.define(t, "everything.yaml"), schema.GroupVersionResource{Group: "fixture.example.com", Version: "v1", Resource: "mayflies"})
	const user, mayflies = "everything", "mayflies.fixture.example.com"
	named := startRun(t, "--kubeconfig", c.admin(t, "mayflies"), "--resource", mayflies, "--procs", "1")

	ran := startRun(t, "--kubeconfig", c.admin(t, user), "--all-resources", "--resource", "resourcequotas", "--procs", "4",
		"--label-filter", "finalizers.changes-before-deletion").wait()

	whole := ran.report(t)
	columns := columnsOf(whole)
	for _, resource := range []string{"configmaps", "leases.coordination.k8s.io", "ingressclasses.networking.k8s.io", "trolleys.fixture.example.com", "resourcequotas"} {
		g.Expect(reasons(columns[resource], v1alpha1.Passed)).To(HaveKey("finalizers.changes-before-deletion"), resource)
	}
	g.Expect(columns["resourcequotas"].Warning).To(And(ContainSubstring("because it was named"), ContainSubstring("all objects of the run")))
	g.Expect(columns["configmaps"].Warning).To(BeEmpty())
	left := map[string]string{}
	for _, one := range whole.LeftOut {
		g.Expect(columns).NotTo(HaveKey(one.Resource))
		left[one.Resource] = one.Reason
		g.Expect(ran.out).NotTo(ContainSubstring("left out " + one.Resource + ": "))
	}
	g.Expect(ran.out).To(ContainSubstring(fmt.Sprintf("\n%d resources left out; --verbose lists them", len(whole.LeftOut))))
	g.Expect(left).To(And(
		HaveKeyWithValue("nodes", ContainSubstring("machines")),
		HaveKeyWithValue("clusterrolebindings.rbac.authorization.k8s.io", ContainSubstring("permissions")),
		HaveKeyWithValue("customresourcedefinitions.apiextensions.k8s.io", ContainSubstring("its objects are APIs")),
		HaveKeyWithValue("limitranges", ContainSubstring("all objects of the run")),
		HaveKeyWithValue("tokenreviews.authentication.k8s.io", ContainSubstring("does not support delete")),
		HaveKeyWithValue("enigmas.fixture.example.com", ContainSubstring("answer: Invalid value")),
		HaveKeyWithValue(mayflies, ContainSubstring("another controller deletes each new Mayfly")),
	))
	for _, r := range c.requests(t, user) {
		made := r.ObjectRef != nil && !r.of("namespaces") && r.Verb == "create" && r.query().Get("dryRun") != "All"
		g.Expect(made && slices.ContainsFunc(whole.LeftOut, func(one v1alpha1.LeftOut) bool {
			return one.Resource == schema.GroupResource{Group: r.ObjectRef.APIGroup, Resource: r.ObjectRef.Resource}.String() &&
				!strings.Contains(one.Resource, "review") && one.Resource != mayflies && one.Resource != tenants // which another test may remove in between
		})).To(BeFalse(), "what is left out is not made, unless that is how it is found out: %s", r)
	}
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
	ran = named.wait()
	g.Expect(ran.code).To(Equal(3))
	g.Expect(ran.cluster(t).Problem).To(ContainSubstring("another controller deletes each new Mayfly"))
}

// deleteNew deletes each new object of a resource, like a controller that rejects it, until the test ends.
func deleteNew(t *testing.T, objects dynamic.Interface, resource schema.GroupVersionResource) {
	t.Helper()
	events, err := objects.Resource(resource).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == watch.Added {
				_ = objects.Resource(resource).Namespace(object.GetNamespace()).Delete(context.Background(), object.GetName(), metav1.DeleteOptions{})
			}
		}
	}()
}

func TestNoCreate(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "looker"

	ran := startRun(t, "--kubeconfig", c.admin(t, user), "--no-create", "--resource", "configmaps,leases,ingressclasses.networking.k8s.io",
		"--procs", "2").wait()

	g.Expect(ran.code).To(Equal(0))
	for resource, column := range columnsOf(ran.report(t)) {
		g.Expect(reasons(column, v1alpha1.Passed)).To(And(HaveLen(6), HaveKey("options.dry-run-creates-nothing")), resource)
		g.Expect(reasons(column, v1alpha1.Filtered)).To(HaveKeyWithValue("finalizers.held", ContainSubstring("--no-create")))
	}
	sent := c.requests(t, user)
	g.Expect(sent).To(ContainElement(HaveField("Verb", "delete")))
	for _, r := range sent {
		harmless := slices.Contains([]string{"get", "list", "watch"}, r.Verb) || strings.HasSuffix(r.ObjectRef.Resource, "reviews") ||
			r.query().Get("dryRun") == metav1.DryRunAll
		g.Expect(harmless).To(BeTrue(), "%s", r)
	}
}

func TestNoCreate_Fixture(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	fixture := write(t, `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}},
		{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lease"}}]}`)

	ran := startRun(t, "--kubeconfig", c.admin(t, "needs-more"), "--no-create", "--resource", "leases", "--fixture", fixture).wait()

	g.Expect(ran.code).To(Equal(3))
	g.Expect(ran.cluster(t).Problem).To(And(ContainSubstring("--no-create"), ContainSubstring(`Secret "password" of the fixture`)))
}

// Controllers write the status, annotations and finalizers of these, create dependents of them, and hold deleted ones.
func TestResource_KindsWithControllers(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	kinds := []string{"deployments.apps", "jobs.batch", "persistentvolumeclaims"}

	ran := startRun(t, "--kubeconfig", c.admin(t, "controllers"), "--resource", "configmaps,"+strings.Join(kinds, ","), "--wait-timeout", "2m").wait()

	g.Expect(ran.code).To(Equal(0))
	columns := columnsOf(ran.report(t))
	plain := reasons(columns["configmaps"], v1alpha1.Passed)
	g.Expect(len(plain)).To(BeNumerically(">", 80))
	for _, kind := range kinds {
		tested := reasons(columns[kind], v1alpha1.Passed)
		skipped := reasons(columns[kind], v1alpha1.Skipped)
		maps.DeleteFunc(skipped, func(id, _ string) bool { return reasons(columns["configmaps"], v1alpha1.Skipped)[id] != "" })
		for id, why := range skipped {
			g.Expect(why).To(Or(HavePrefix("others "), HavePrefix("another controller ")), "%s of %s: what they do makes the difference", id, kind)
			tested[id] = why
		}
		for id := range plain {
			g.Expect(tested).To(HaveKey(id), kind)
		}
		g.Expect(len(skipped)).To(BeNumerically("<=", 8), kind)
	}
}

func TestFixture_Prerequisites(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	fixture := write(t, `apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {of: a widget}
---
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: of-the-user, annotations: {example.com/team: storage}}
data: {}
revision: 7
`)
	ran := startRun(t, "--kubeconfig", c.admin(t, "fixture"), "--resource", "controllerrevisions.apps", "--fixture", fixture,
		"--procs", "1", "--label-filter", "finalizers.held").wait()

	g.Expect(ran.code).To(Equal(0))
	held := resultOf(ran.cluster(t), "finalizers.held")
	g.Expect(held.Timeline.Requests[0].Body).To(And(ContainSubstring(`"revision":"(redacted)"`), ContainSubstring(`"example.com/team":"(redacted)"`),
		Not(ContainSubstring("of-the-user"))))
	created := slices.ContainsFunc(c.requests(t, "fixture"), func(r request) bool {
		return r.Verb == "create" && r.of("secrets")
	})
	g.Expect(created).To(BeTrue(), "the Secret is made")
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

func TestFixture_Refused(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	refused := write(t, "apiVersion: apps/v1\nkind: ControllerRevision\ndata: {}\nrevision: -7\n")

	ran := startRun(t, "--kubeconfig", c.admin(t, "refused"), "--resource", "controllerrevisions.apps", "--fixture", refused).wait()

	g.Expect(ran.code).To(Equal(3))
	g.Expect(ran.cluster(t).Problem).To(And(
		ContainSubstring("the server rejects the fixture of controllerrevisions.apps"), ContainSubstring("revision: Invalid value: -7")))
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

func TestController_NotAtWork(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	arguments := []string{
		"--kubeconfig", c.admin(t, "controllers"), "--resource", "leases", "--controller", "deploy/keeper", "--controller-namespace", "default",
		"--procs", "1", "--label-filter", "operator.finalizer-before-children",
	}
	absent := startRun(t, arguments...).wait()
	g.Expect(absent.code).To(Equal(3))
	g.Expect(absent.cluster(t).Problem).To(And(
		ContainSubstring(`there is no Deployment "keeper" in namespace "default"`), ContainSubstring("kubectl get deploy")))

	labels := map[string]string{"app": "keeper"}
	_, err := c.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "keeper"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "keeper", Image: "keeper"}}},
			},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_ = c.AppsV1().Deployments("default").Delete(context.Background(), "keeper", metav1.DeleteOptions{})
	})
	idle := startRun(t, arguments...).wait()
	g.Expect(reasons(idle.cluster(t), v1alpha1.Skipped)).To(
		HaveKeyWithValue("operator.finalizer-before-children", ContainSubstring(`Deployment "keeper" in namespace "default" has 0 replicas`)))
	g.Expect(c.mentioning(t, idle.report(t).RunID)).To(BeEmpty())
}

// Faults that other API servers and storage backends may have. Each is detected by the behavior that is named with it.
func TestFaultyServer_Resource(t *testing.T) {
	t.Parallel()
	const lease, deployment, cart = "leases", "deployments.apps", "carts.fixture.example.com"
	shared.in(t).define(t, "status.yaml")
	isDelete := func(request *http.Request) bool {
		return request.Method == http.MethodDelete &&
			(strings.Contains(request.URL.Path, "/leases") || strings.Contains(request.URL.Path, "/deployments"))
	}
	without := func(request *http.Request, parameters ...string) {
		query := request.URL.Query()
		for _, parameter := range parameters {
			query.Del(parameter)
		}
		request.URL.RawQuery = query.Encode()
	}
	ignoresDryRun := func(_ http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		if isDelete(request) {
			without(request, "dryRun")
			replaceBody(t, request, `"dryRun":["All"]`, `"dryRun":[]`)
		}
		return false
	}
	for _, test := range []struct {
		name, resource, noticedBy string
		does                      hostile
	}{
		{"ignores dryRun", lease, "finalizers.dry-run", ignoresDryRun},
		{"ignores dryRun where others write, too", deployment, "finalizers.dry-run", ignoresDryRun},
		{"ignores preconditions", lease, "finalizers.preconditions", func(_ http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if isDelete(request) {
				replaceBody(t, request, `"preconditions":`, `"ignored":`)
			}
			return false
		}},
		{"ignores the selectors of collections", lease, "cascade.collection.selector", func(_ http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if isDelete(request) && strings.HasSuffix(request.URL.Path, "/leases") {
				request.URL.RawQuery = url.Values{"labelSelector": {"deletion-conformance.github.io/spec"}}.Encode()
			}
			return false
		}},
		{"ignores the policy", lease, "cascade.orphan.one-level", func(_ http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if isDelete(request) {
				replaceBody(t, request, `"Orphan"`, `"Background"`)
			}
			return false
		}},
		{"drops finalizers on status writes", deployment, "finalizers.status-write-keeps-finalizers", func(_ http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if request.Method == http.MethodPut && strings.HasSuffix(request.URL.Path, "/status") {
				replaceBody(t, request, `"finalizers":`, `"ignored":`)
			}
			return false
		}},
		{"drops finalizers on patches of a status that must say something", cart, "finalizers.status-write-keeps-finalizers",
			func(_ http.ResponseWriter, request *http.Request, _ http.Handler) bool {
				if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/status") && request.URL.Query().Get("dryRun") == "" {
					request.URL.Path = strings.TrimSuffix(request.URL.Path, "/status")
					replaceBody(t, request, `"status":{"phase":"Ready"}`, `"metadata":{"finalizers":null}`)
				}
				return false
			}},
		{"answers deletes with nothing", lease, "finalizers.held", func(writer http.ResponseWriter, request *http.Request, next http.Handler) bool {
			if isDelete(request) {
				next.ServeHTTP(silent{writer}, request)
			}
			return isDelete(request)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			noticed(t, test.resource, test.noticedBy, test.does)
		})
	}
}

// It is no subtest, because these begin last, and it takes a minute to delete objects without events.
func TestResource_NoDeletedEvents(t *testing.T) {
	t.Parallel()
	noticed(t, "leases", "finalizers.last-removal", rewriting(func(line, _ []byte) []byte {
		if bytes.HasPrefix(line, []byte(`{"type":"DELETED"`)) && bytes.Contains(line, []byte(`"kind":"Lease"`)) {
			return []byte{}
		}
		return line
	}))
}

// noticed runs a behavior on a resource of a server with a fault: it fails, and another passes.
func noticed(t *testing.T, resource, by string, does hostile) {
	t.Helper()
	g := NewWithT(t)
	kubeconfig := shared.in(t).throughProxy(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if !does(writer, request, next) {
				next.ServeHTTP(writer, request)
			}
		}
	})
	ran := startRun(t, "--kubeconfig", kubeconfig, "--resource", resource, "--procs", "2", "--wait-timeout", "4s",
		"--label-filter", "finalizers.changes-before-deletion || "+by).wait()
	g.Expect(ran.code).To(Equal(1))
	g.Expect(reasons(ran.cluster(t), v1alpha1.Failed)).To(HaveKey(by))
	g.Expect(reasons(ran.cluster(t), v1alpha1.Passed)).To(HaveKey("finalizers.changes-before-deletion"))
}

// A server with a few faults fails many behaviors, and the report has the faults.
func TestFaultyServer_Causes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	kubeconfig := c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if !strings.Contains(request.URL.Path, "/leases") || request.Method == http.MethodGet {
				next.ServeHTTP(writer, request)
				return
			}
			replaceBody(t, request, `"finalizers":`, `"ignored":`)
			replaceBody(t, request, `"propagationPolicy":`, `"ignored":`)
			if request.Method == http.MethodDelete && strings.HasSuffix(request.URL.Path, "/leases") {
				writer.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(writer, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
				return
			}
			next.ServeHTTP(writer, request)
		}
	})

	ran := startRun(t, "--kubeconfig", kubeconfig, "--resource", "leases", "--wait-timeout", "2s", "--label-filter",
		"finalizers.changes-before-deletion || finalizers.held || finalizers.grace-zero || finalizers.name-in-use || finalizers.any-order || "+
			"cascade.collection.selector || cascade.collection.bad-selector").wait()

	g.Expect(ran.code).To(Equal(1))
	causes := ran.report(t).Causes
	g.Expect(causes).To(HaveLen(2))
	for i, expected := range []struct {
		cause  string
		failed int
	}{{"finalizers are not kept", 5}, {"deletecollection is ignored", 2}} {
		g.Expect(causes[i].Cause).To(HavePrefix(expected.cause))
		g.Expect(causes[i].Failed).To(Equal(expected.failed), "%v", causes[i].Behaviors)
	}
	g.Expect(ran.out).To(ContainSubstring("5 behaviors, probably with one cause: finalizers are not kept"))
}

func TestRun_SelectorsIgnored(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	classes := c.NetworkingV1().IngressClasses()
	others, err := classes.Create(t.Context(), &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "others-", Labels: map[string]string{session.RunLabel: "others"}},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.com/ingress"},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = classes.Delete(context.Background(), others.Name, metav1.DeleteOptions{}) })
	kubeconfig := c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if query := request.URL.Query(); strings.HasSuffix(request.URL.Path, "/ingressclasses") && !query.Has("watch") {
				query.Del("labelSelector")
				request.URL.RawQuery = query.Encode()
			}
			next.ServeHTTP(writer, request)
		}
	})

	ran := startRun(t, "--kubeconfig", kubeconfig, "--resource", "ingressclasses.networking.k8s.io", "--procs", "1",
		"--label-filter", "cascade.orphan.one-level || finalizers.changes-before-deletion").wait()

	g.Expect(ran.code).To(Equal(0))
	g.Expect(reasons(ran.cluster(t), v1alpha1.Passed)).To(HaveLen(2))
	_, err = classes.Get(t.Context(), others.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

// replaceBody changes the body of a request.
func replaceBody(t *testing.T, request *http.Request, from, to string) {
	t.Helper()
	content, err := io.ReadAll(request.Body)
	if err != nil {
		t.Error(err)
	}
	content = bytes.ReplaceAll(content, []byte(from), []byte(to))
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
}

// silent receives a response of which only the status is sent.
type silent struct{ http.ResponseWriter }

func (s silent) WriteHeader(statusCode int) {
	s.Header().Del("Content-Length")
	s.ResponseWriter.WriteHeader(statusCode)
}
func (s silent) Write(content []byte) (int, error) { return len(content), nil }

func TestFinalizersOfOthers_Figures(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	// Kubernetes adds a finalizer to a new claim, and its controller removes it.
	const protection = "kubernetes.io/pvc-protection"

	ran := startRun(t, "--kubeconfig", c.admin(t, "released"), "--resource", "persistentvolumeclaims", "--procs", "1",
		"--label-filter", "watch.by-name").wait()

	figures := slices.DeleteFunc(slices.Clone(ran.cluster(t).Figures), func(f v1alpha1.Figure) bool { return f.Operation != v1alpha1.FinalizerRelease })
	g.Expect(figures).To(HaveLen(1))
	g.Expect(figures[0].Finalizer).To(Equal(protection))
	g.Expect(figures[0].Count).To(BeNumerically(">=", 1))
	g.Expect(figures[0].P90).To(And(BeNumerically(">", 0), BeNumerically(">=", figures[0].P50)))
	for _, form := range []string{"summary.md", "report.html"} {
		g.Expect(os.ReadFile(filepath.Join(ran.reports, form))).To(ContainSubstring("Finalizer "+protection), form)
	}
}
