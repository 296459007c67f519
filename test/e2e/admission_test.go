package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Behaviors that create a ConfigMap, a pod, and a ReplicaSet whose controller creates pods.
const (
	onConfigMap  = "finalizers.held"
	onPod        = "graceful.immediate-grace-zero"
	onReplicaSet = "cascade.workload.replicaset.background"
)

// admissionLabel is on the namespaces to which a case's policy applies.
const admissionLabel = "admission-test"

// policySpec is the spec of an admission policy for the namespaces of one case and the requests of one user.
const policySpec = `
failurePolicy: Fail
matchConstraints:
  namespaceSelector: {matchLabels: {admission-test: NAME}}
  resourceRules: [{apiGroups: ["", apps], apiVersions: [v1], operations: [OPERATION], resources: [RESOURCES]}]
`

// validating returns the spec of a ValidatingAdmissionPolicy.
func validating(operation, resources, expression, message string) string {
	spec := strings.NewReplacer("OPERATION", operation, "RESOURCES", resources).Replace(policySpec)
	return spec + fmt.Sprintf("validations: [{expression: %q, message: %q}]\n", expression, message)
}

// mutating returns the spec of a MutatingAdmissionPolicy.
func mutating(resource, condition, expression string) string {
	spec := strings.NewReplacer("OPERATION", "CREATE", "RESOURCES", resource).Replace(policySpec)
	return spec + fmt.Sprintf("reinvocationPolicy: Never\nmatchConditions: [{name: c, expression: %q}]\nmutations: [{patchType: JSONPatch, jsonPatch: {expression: %q}}]\n",
		condition, expression)
}

// policy creates a policy of a kind and its binding, and removes both after the test.
func (c *cluster) policy(t *testing.T, kind, plural, name, spec string) {
	t.Helper()
	objects, err := dynamic.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(spec, "NAME", name)), &content); err != nil {
		t.Fatal(err)
	}
	binding := map[string]any{"policyName": name}
	if kind == "ValidatingAdmissionPolicy" {
		binding["validationActions"] = []any{"Deny"}
	}
	for _, one := range []struct {
		kind, resource string
		spec           map[string]any
	}{{kind, plural, content}, {kind + "Binding", strings.ToLower(kind) + "bindings", binding}} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": one.kind, "spec": one.spec}}
		object.SetName(name)
		client := objects.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: one.resource})
		if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Delete(t.Context(), name, metav1.DeleteOptions{}) })
	}
}

// inEffect waits until the API server enforces a policy, as a request of the user in a namespace of the case shows.
func (c *cluster) inEffect(t *testing.T, name string, shows func(client kubernetes.Interface, namespace string) bool) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "canary-" + name, Labels: map[string]string{admissionLabel: name}}}
	_, err := c.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() bool { return shows(client, namespace.Name) }).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(BeTrue())
}

// admissionCase is an effect of admission on a run, with the expected results.
type admissionCase struct {
	name string
	// setUp sets up the admission, and returns flags of the run in addition to those of all cases.
	setUp func(t *testing.T, c *cluster, name string) []string
	// passes are behaviors that pass, and skips those that are skipped with a reason that contains all quotes.
	passes, skips, quotes []string
}

func (a admissionCase) run(t *testing.T) {
	g := NewWithT(t)
	c := shared.in(t)
	kubeconfig := c.admin(t, a.name)
	flags := a.setUp(t, c, a.name)
	filter := strings.Join(slices.Concat(a.passes, a.skips), " || ")
	ran := startRun(t, append([]string{"--kubeconfig", kubeconfig, "--label-filter", filter}, flags...)...).wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.report(t).Clusters[0]
	for _, outcome := range []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Errored} {
		g.Expect(reasons(cluster, outcome)).To(BeEmpty(), string(outcome))
	}
	passed, skipped := reasons(cluster, v1alpha1.Passed), reasons(cluster, v1alpha1.Skipped)
	for _, id := range a.passes {
		g.Expect(passed).To(HaveKey(id))
	}
	for _, id := range a.skips {
		for _, words := range a.quotes {
			g.Expect(skipped[id]).To(ContainSubstring(words), id)
		}
	}
}

// labeled returns the flag that labels the run's namespaces for a case.
func labeled(name string) []string {
	return []string{"--namespace-label", admissionLabel + "=" + name}
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// canaryPod is a pod for checking the effect of admission.
func canaryPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "canary"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}

func TestAdmission_Skips(t *testing.T) {
	t.Parallel()
	for _, test := range []admissionCase{
		{
			name: "admission-refuses",
			setUp: func(t *testing.T, c *cluster, name string) []string {
				c.policy(t, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", name,
					validating("CREATE", "pods, replicasets", "'team' in object.metadata.?labels.orValue({})", "every workload needs a label team"))
				c.inEffect(t, name, func(client kubernetes.Interface, namespace string) bool {
					_, err := client.CoreV1().Pods(namespace).Create(t.Context(), canaryPod(), dryRun)
					return apierrors.IsInvalid(err)
				})
				return labeled(name)
			},
			passes: []string{onConfigMap}, skips: []string{onPod, onReplicaSet},
			quotes: []string{`ValidatingAdmissionPolicy "admission-refuses"`, "every workload needs a label team"},
		}, {
			name: "admission-refuses-deletes",
			setUp: func(t *testing.T, c *cluster, name string) []string {
				c.policy(t, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", name,
					validating("DELETE", "pods", "request.userInfo.username != 'admission-refuses-deletes' || oldObject.metadata.name.startsWith('canary')", "pods stay"))
				c.inEffect(t, name, func(client kubernetes.Interface, namespace string) bool {
					pod := canaryPod()
					pod.Name, pod.Spec.ServiceAccountName = "stays", "default"
					_, _ = client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
					return apierrors.IsInvalid(client.CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{DryRun: dryRun.DryRun}))
				})
				return labeled(name)
			},
			passes: []string{onConfigMap}, skips: []string{onPod}, quotes: []string{"delete pods", `ValidatingAdmissionPolicy "admission-refuses-deletes"`, "pods stay"},
		}, {
			name: "admission-injects",
			setUp: func(t *testing.T, c *cluster, name string) []string {
				c.policy(t, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", name, mutating("pods", "true",
					`[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "injected", image: "none"}}]`))
				c.inEffect(t, name, func(client kubernetes.Interface, namespace string) bool {
					pod, err := client.CoreV1().Pods(namespace).Create(t.Context(), canaryPod(), dryRun)
					return err == nil && len(pod.Spec.Containers) > 1
				})
				return labeled(name)
			},
			passes: []string{onConfigMap, onPod, onReplicaSet}, // no containers run
		}, {
			name: "admission-holds",
			setUp: func(t *testing.T, c *cluster, name string) []string {
				c.policy(t, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", name, mutating("configmaps",
					`request.userInfo.username == "admission-holds" && !object.metadata.name.contains("probe-")`, // the namespace must be deletable
					`[JSONPatch{op: "add", path: "/metadata/finalizers", value: ["cloud.example.com/free"]}]`))
				c.inEffect(t, name, func(client kubernetes.Interface, namespace string) bool {
					stays, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stays"}}, dryRun)
					return err == nil && len(stays.Finalizers) > 0
				})
				return labeled(name)
			},
			passes: []string{onPod}, skips: []string{onConfigMap}, quotes: []string{`MutatingAdmissionPolicy "admission-holds"`, `adds finalizer "cloud.example.com/free"`},
		}, {
			name: "admission-restricts",
			setUp: func(*testing.T, *cluster, string) []string {
				return []string{"--namespace-label", "pod-security.kubernetes.io/enforce=restricted"}
			},
			passes: []string{onConfigMap, onPod, onReplicaSet}, // its pods are restricted
		}, {
			name: "admission-counts",
			setUp: func(t *testing.T, c *cluster, name string) []string {
				g := NewWithT(t)
				_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				full := &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Name: "full"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
				}
				_, err = c.CoreV1().ResourceQuotas(name).Create(t.Context(), full, metav1.CreateOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Eventually(func() corev1.ResourceList {
					quota, _ := c.CoreV1().ResourceQuotas(name).Get(t.Context(), full.Name, metav1.GetOptions{})
					return quota.Status.Hard
				}).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).ShouldNot(BeEmpty())
				return []string{"--namespace", name}
			},
			passes: []string{onConfigMap}, skips: []string{onPod, onReplicaSet}, quotes: []string{`ResourceQuota "full"`, "exceeded quota: full, requested: pods=1, used: pods=0, limited: pods=0"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}
