package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
)

// foreign is a finalizer of another controller that frees something outside the cluster.
const foreign = "cloud.example.com/free"

// decorate fills a user's namespace with typical objects.
func (c *cluster) decorate(t *testing.T, namespace string) {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	create := metav1.CreateOptions{}
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "shop"}}
	}
	var failures []error
	note := func(_ any, err error) { failures = append(failures, err) }
	for _, name := range []string{"precious", "absent", "named", "one", "object"} {
		note(c.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: named(name), Data: map[string]string{"a": "b"}}, create))
		note(c.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: named(name), StringData: map[string]string{"a": "b"}}, create))
	}
	note(c.CoreV1().Services(namespace).Create(ctx, &corev1.Service{ObjectMeta: named("shop"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 80}},
	}}, create))
	note(c.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: named("shop"), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
	}}, create))
	// Pods need the ServiceAccount, which a controller creates.
	g.Eventually(func() error {
		_, err := c.CoreV1().ServiceAccounts(namespace).Patch(ctx, "default", types.MergePatchType, []byte(
			`{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":"arn:aws:iam::1:role/shop"}},"imagePullSecrets":[{"name":"precious"}]}`), metav1.PatchOptions{})
		return err
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/shop"}}, NodeSelector: map[string]string{"no": "where"}}
	note(c.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: named("alone"), Spec: pod}, create))
	note(c.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: named("shop"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}}, Spec: pod},
	}}, create))
	note(c.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "news"}, Reason: "Sold", InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: namespace, Name: "precious"},
	}, create))
	g.Expect(slices.DeleteFunc(failures, func(err error) bool { return err == nil })).To(BeEmpty())
}

// contentOf returns everything in a namespace, including Events, with its content.
func (c *cluster) contentOf(t *testing.T, namespace string) map[string]string {
	t.Helper()
	content := map[string]string{}
	for name, object := range c.objects(t) {
		if object.GetNamespace() == namespace {
			content[name] = fmt.Sprint(object.Object)
		}
	}
	events, err := c.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, event := range events.Items {
		content["event about "+event.InvolvedObject.Name+": "+event.Reason] = "" // the scheduler increments its count
	}
	return content
}

// settledContentOf returns the content of a namespace after its controllers have finished.
func (c *cluster) settledContentOf(t *testing.T, namespace string) map[string]string {
	t.Helper()
	var content map[string]string
	NewWithT(t).Eventually(func(g Gomega) {
		before := content
		content = c.contentOf(t, namespace)
		g.Expect(content).To(Equal(before))
		g.Expect(len(content)).To(BeNumerically(">", 15))
	}).WithTimeout(waitTimeout).WithPolling(3 * time.Second).Should(Succeed())
	return content
}

// mutate creates a policy that changes new objects of a user, by a CEL expression for JSON patches.
func (c *cluster) mutate(t *testing.T, user, resource, patches string) {
	t.Helper()
	c.policy(t, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", user, fmt.Sprintf(`
reinvocationPolicy: Never
matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [%s]}]}
matchConditions: [{name: user, expression: 'request.userInfo.username == %q'}]
mutations: [{patchType: JSONPatch, jsonPatch: {expression: %q}}]
`, resource, user, patches))
	c.awaitFinalizer(t, user, resource)
}

// awaitFinalizer waits until a policy adds a finalizer to new objects of a user, as a dry-run shows. API servers load policies once a
// second.
func (c *cluster) awaitFinalizer(t *testing.T, user, resource string) {
	t.Helper()
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	objects := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Version: "v1", Resource: resource})
	kind := map[string]string{"configmaps": "ConfigMap", "namespaces": "Namespace"}[resource]
	namespace := map[string]string{"configmaps": metav1.NamespaceDefault}[resource]
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "tried"}}}
	NewWithT(t).Eventually(func() ([]string, error) {
		created, err := objects.Namespace(namespace).Create(t.Context(), object, dryRun)
		if err != nil {
			return nil, err
		}
		return created.GetFinalizers(), nil
	}).WithTimeout(waitTimeout).WithPolling(polling).ShouldNot(BeEmpty())
}

// addingFinalizer is a patch that adds a finalizer to each new object.
const addingFinalizer = `has(object.metadata.finalizers) ?
	[JSONPatch{op: "add", path: "/metadata/finalizers/-", value: "` + foreign + `"}] :
	[JSONPatch{op: "add", path: "/metadata/finalizers", value: ["` + foreign + `"]}]`

// holding returns the ConfigMaps of a run with the foreign finalizer, and those with one of the run.
func (c *cluster) holding(t *testing.T, run string) (foreignly, own []corev1.ConfigMap) {
	t.Helper()
	maps, err := c.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{LabelSelector: session.RunLabel + "=" + run})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, object := range maps.Items {
		if slices.Contains(object.Finalizers, foreign) {
			foreignly = append(foreignly, object)
		}
		if slices.ContainsFunc(object.Finalizers, func(finalizer string) bool { return strings.HasPrefix(finalizer, framework.Domain) }) {
			own = append(own, object)
		}
	}
	return foreignly, own
}

// free plays the controller of the foreign finalizer: it releases terminating ConfigMaps of a run, and returns which.
func (c *cluster) free(t *testing.T, run string) (freed func() []types.UID) {
	t.Helper()
	var mu sync.Mutex
	var uids []types.UID
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			maps, err := c.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: session.RunLabel + "=" + run})
			for _, object := range maps.Items {
				at := slices.Index(object.Finalizers, foreign)
				if err != nil || at < 0 || object.DeletionTimestamp == nil {
					continue
				}
				patch := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/finalizers/%d","value":%q},{"op":"remove","path":"/metadata/finalizers/%d"}]`, at, foreign, at)
				if _, err := c.CoreV1().ConfigMaps(object.Namespace).Patch(ctx, object.Name, types.JSONPatchType, patch, metav1.PatchOptions{}); err == nil {
					mu.Lock()
					uids = append(uids, object.UID)
					mu.Unlock()
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() []types.UID {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(uids)
	}
}

func TestFinalizersOfOthers_Awaited(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "held-up"
	kubeconfig := c.admin(t, user)
	c.mutate(t, user, "configmaps", addingFinalizer)

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "2", "--label-filter", "finalizers.held", "--cleanup-timeout", "20s").wait()

	run := ran.report(t).RunID
	g.Expect(ran.code).To(Equal(4))
	g.Expect(ran.errOut).To(And(ContainSubstring("could not delete everything that the run created"), MatchRegexp(
		`ConfigMap `+run+`-\d+/[a-z0-9-]+, terminating for \d+s, waits for finalizer `+foreign+` \(set by no field manager, as by admission\)`)))
	g.Expect(ran.cluster(t).LeftBehind).To(ContainSubstring(foreign))
	foreignly, own := c.holding(t, run)
	g.Expect(foreignly).NotTo(BeEmpty(), "nobody has done what the finalizer stands for")
	g.Expect(own).To(BeEmpty(), "the run's own finalizers are off")

	cleanUp := func(arguments ...string) outcome {
		return start(t, emptyEnvironment(t), append([]string{"cleanup", "--kubeconfig", kubeconfig, "--run", run}, arguments...)...).wait()
	}
	cleaned := cleanUp("--cleanup-timeout", "20s")
	g.Expect(cleaned.code).To(Equal(4))
	g.Expect(cleaned.errOut).To(ContainSubstring("waits for finalizer " + foreign))
	still, _ := c.holding(t, run)
	g.Expect(still).To(HaveLen(len(foreignly)))

	g.Expect(cleanUp("--force-finalizers").code).To(BeZero())
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
}

func TestFinalizersOfOthers_Teardown(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "freed"
	kubeconfig := c.admin(t, user)
	c.mutate(t, user, "configmaps", addingFinalizer)
	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "1", "--label-filter", "finalizers.held", long)
	run := ""
	g.Eventually(func(g Gomega) {
		made := c.namespacesMade(t, user)
		g.Expect(made).NotTo(BeEmpty())
		run = strings.TrimSuffix(made[0], "-1")
		foreignly, _ := c.holding(t, run)
		g.Expect(foreignly).NotTo(BeEmpty())
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	ran.signal(syscall.SIGKILL)
	ran.wait()
	foreignly, _ := c.holding(t, run)
	g.Expect(foreignly).NotTo(BeEmpty())
	freed := c.free(t, run)
	cleaned := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", run).wait()

	g.Expect(cleaned.code).To(BeZero())
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
	g.Expect(freed()).To(ContainElements(uidsOf(foreignly)), "its controller has let go of each")
}

func uidsOf(objects []corev1.ConfigMap) []types.UID {
	var uids []types.UID
	for _, object := range objects {
		uids = append(uids, object.UID)
	}
	return uids
}

func TestTeardown_HeldNamespaces(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user, rancher = "ranch-hand", "controller.cattle.io/namespace-auth"
	kubeconfig := c.admin(t, user)
	c.mutate(t, user, "namespaces", `[JSONPatch{op: "add", path: "/metadata/finalizers", value: ["`+rancher+`"]}]`)

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "1", "--label-filter", "finalizers.held", "--cleanup-timeout", "20s").wait()

	run := ran.report(t).RunID
	g.Expect(ran.code).To(Equal(4))
	g.Expect(ran.errOut).To(ContainSubstring("Namespace " + run + "-1, terminating for"))
	g.Expect(ran.errOut).To(ContainSubstring("waits for finalizer " + rancher))
	namespace, err := c.CoreV1().Namespaces().Get(t.Context(), run+"-1", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namespace.Finalizers).To(Equal([]string{rancher}))

	cleaning := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", run)
	g.Eventually(cleaning.out.String).WithTimeout(waitTimeout).WithPolling(polling).Should(ContainSubstring("removing run"))
	_, err = c.CoreV1().Namespaces().Patch(t.Context(), run+"-1", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cleaning.wait().code).To(BeZero())
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
}

func TestRun_UnavailableAPIService(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := (&cluster{}).in(t)
	t.Cleanup(func() { g.Expect(c.local.Destroy()).To(Succeed()) })
	stale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "kube-system", "name": "metrics-server"},
		},
	}}
	services := dynamic.NewForConfigOrDie(c.config).Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	_, err := services.Create(t.Context(), stale, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	ran := startRun(t, "--kubeconfig", c.admin(t, "stale"), "--procs", "1", "--label-filter", "finalizers.held", "--cleanup-timeout", "20s").wait()

	g.Expect(ran.code).To(Equal(4))
	g.Expect(ran.errOut).To(And(
		ContainSubstring(`APIService "v1beta1.metrics.k8s.io" is unavailable`), ContainSubstring("no namespace of the cluster can be deleted")))
	g.Expect(ran.out).To(ContainSubstring(`APIService "v1beta1.metrics.k8s.io" is unavailable`), "preflight finds it")
	g.Expect(ran.errOut).NotTo(ContainSubstring("deadline exceeded"))
}
