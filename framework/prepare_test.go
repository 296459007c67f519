package framework

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// clusterOf returns the cluster of spec "abc" in run "dc1", in namespace "dc1-2".
func clusterOf(settings session.Settings) *Cluster {
	config := session.Config{Settings: settings, Run: "dc1", Worker: 2, Namespace: "dc1-2"}
	return &Cluster{spec: &spec{session: &session.Session{Config: config}, id: "abc"}, namespace: config.Namespace}
}

// manifest decodes an object from YAML.
func manifest(t *testing.T, text string) *Object {
	t.Helper()
	object := &Object{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestComplete_TemplateLabels(t *testing.T) {
	const labels = `{app: x, deletion-conformance.github.io/run: dc1, deletion-conformance.github.io/spec: abc, deletion-conformance.github.io/worker: "2"}`
	const none = `{app: x}`
	for _, test := range []struct {
		name string
		text func(labels string) string
	}{
		{"an object", func(labels string) string { return `{kind: ConfigMap, metadata: {labels: ` + labels + `}}` }},
		{"its pods", func(labels string) string {
			return `{kind: ReplicaSet, metadata: {labels: ` + labels + `}, spec: {
				selector: {matchLabels: {app: x}}, template: {metadata: {labels: ` + labels + `}, spec: {hostNetwork: true}}}}`
		}},
		{"the pods of its jobs", func(labels string) string {
			return `{kind: CronJob, metadata: {labels: ` + labels + `}, spec: {jobTemplate: {metadata: {labels: ` + labels + `},
				spec: {template: {metadata: {labels: ` + labels + `}, spec: {restartPolicy: Never}}}}}}`
		}},
		{"its claims", func(labels string) string {
			return `{kind: StatefulSet, metadata: {labels: ` + labels + `}, spec: {template: {metadata: {labels: ` + labels + `}},
				volumeClaimTemplates: [{metadata: {name: a, labels: ` + labels + `}}, {metadata: {name: b, labels: ` + labels + `}}]}}`
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := manifest(t, test.text(none))
			clusterOf(session.Settings{}).complete(object.Object)
			NewWithT(t).Expect(object).To(Equal(manifest(t, test.text(labels))))
		})
	}
}

func TestComplete_NoLabels(t *testing.T) {
	object := fixtures.ConfigMap("plain")
	cluster := clusterOf(session.Settings{})
	cluster.complete(object.Object)
	NewWithT(t).Expect(object.GetLabels()).To(BeEquivalentTo(cluster.Labels()))
}

func TestComplete_ImageMirror(t *testing.T) {
	const text = `{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {
		initContainers: [{image: REGISTRY/pause:3.10}],
		containers: [{image: REGISTRY/e2e-test-images/busybox:1.37.0-1}, {image: elsewhere.example/own:1}]}}}}}}`
	from := func(registry string) *Object {
		return manifest(t, strings.ReplaceAll(text, "REGISTRY", registry))
	}
	for _, test := range []struct{ name, mirror, want string }{
		{"no mirror", "", "registry.k8s.io"},
		{"a mirror", "mirror.example:5000/kubernetes", "mirror.example:5000/kubernetes"},
		{"a mirror with a slash", "mirror.example/", "mirror.example"},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := from(fixtures.Registry)
			clusterOf(session.Settings{Additions: session.Additions{ImageRegistry: test.mirror}}).complete(object.Object)
			NewWithT(t).Expect(object).To(Equal(from(test.want)))
		})
	}
}

func TestComplete_FixtureImages(t *testing.T) {
	cluster := clusterOf(session.Settings{Additions: session.Additions{ImageRegistry: "mirror.example"}})
	for _, test := range []struct {
		object *Object
		path   []string
	}{
		{fixtures.GhostBoundPod("pod"), []string{"spec", "containers"}},
		{fixtures.NodePod("pod", fixtures.Container{Name: "main"}), []string{"spec", "containers"}},
		{fixtures.ReplicaSet("set"), []string{"spec", "template", "spec", "containers"}},
	} {
		g := NewWithT(t)
		cluster.complete(test.object.Object)
		containers, _, err := unstructured.NestedSlice(test.object.Object, test.path...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(containers).To(HaveEach(HaveKeyWithValue("image", HavePrefix("mirror.example/"))))
	}
}

func TestPrepare(t *testing.T) {
	config, _ := apiservertest.Start(t, http.NotFound)
	cluster := clusterOf(session.Settings{})
	var err error
	if cluster.session.Harness, err = client.New(config, client.NewGuard("dcb2c4d5f6")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name            string
		manifest        *Object
		options         []ObjectOption
		want, namespace string
	}{
		{"in a namespace", fixtures.ConfigMap("c"), nil, "c-abc", "dc1-2"},
		{"cluster-scoped", fixtures.Namespace("n"), nil, "n-dc1-abc", ""},
		{"a definition", fixtures.CustomResourceDefinition("example.io"), nil, "things.example.io", ""},
		{"options have the last word", fixtures.ConfigMap("c"), []ObjectOption{Named("exactly")}, "exactly", "dc1-2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			before := test.manifest.DeepCopy()
			object := cluster.Prepare(t.Context(), test.manifest, test.options...)
			g.Expect(object.GetName()).To(Equal(test.want))
			g.Expect(object.GetNamespace()).To(Equal(test.namespace))
			g.Expect(object.GetLabels()).To(HaveKeyWithValue(client.SpecLabel, "abc"))
			g.Expect(test.manifest).To(Equal(before), "the manifest itself is left as it was")
		})
	}
}

func TestSelector_SharedNamespace(t *testing.T) {
	for _, test := range []struct{ name, selector, want string }{
		{"of a workload", `{matchLabels: {app: x}}`, `{matchLabels: {app: x, deletion-conformance.github.io/spec: abc}}`},
		{"of a Service", `{app: x}`, `{app: x, deletion-conformance.github.io/spec: abc}`},
		{"that says nothing", `{}`, `{}`},
		{"with expressions", `{matchExpressions: [{key: app, operator: Exists}]}`, `{matchExpressions: [{key: app, operator: Exists}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := manifest(t, `{kind: Any, spec: {selector: `+test.selector+`}}`)
			clusterOf(session.Settings{}).narrow(object)
			NewWithT(t).Expect(object).To(Equal(manifest(t, `{kind: Any, spec: {selector: `+test.want+`}}`)))
		})
	}
}

func TestGroup_EachTry(t *testing.T) {
	g := NewWithT(t)
	config := session.Config{GroupDomain: "2.example.io"}
	groupIn := func(try int) string {
		cluster := &Cluster{spec: &spec{session: &session.Session{Config: config}, behavior: "cascade.a", attempt: try}}
		g.Expect(cluster.endsWithSpec(cluster.Group())).To(BeTrue())
		g.Expect(cluster.endsWithSpec(config.CustomGroup())).To(BeFalse(), "the run's")
		return cluster.Group()
	}
	g.Expect(groupIn(1)).To(Equal("cascade.a.2.example.io"))
	g.Expect(groupIn(2)).To(Equal("try2.cascade.a.2.example.io"))
}

func TestPrepare_SpareNode(t *testing.T) {
	const pod = `{kind: Pod, spec: {containers: [{name: main}]}}`
	const workload = `{kind: StatefulSet, spec: {template: {spec: {containers: [{name: main}]}}}}`
	on := func(operator string) string {
		return `{matchFields: [{key: metadata.name, operator: ` + operator + `, values: [spare]}]}`
	}
	required := func(operator string) string {
		return `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [` + on(operator) + `]}}}`
	}
	preferred := `affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: ` + on("In") + `}]}}`
	for _, test := range []struct {
		name, before, after string
		spare               string
		needsNode           bool
		disruptive          bool
	}{
		{"a pod", pod, `{kind: Pod, spec: {` + required("NotIn") + `, containers: [{name: main}]}}`, "spare", true, false},
		{"a pod of a disruptive spec", pod, `{kind: Pod, spec: {` + required("In") + `, containers: [{name: main}]}}`, "spare", true, true},
		{"a workload", workload, `{kind: StatefulSet, spec: {template: {spec: {` + required("NotIn") + `, containers: [{name: main}]}}}}`, "spare", true, false},
		{"a workload of a disruptive spec", workload, `{kind: StatefulSet, spec: {template: {spec: {` + preferred + `, containers: [{name: main}]}}}}`,
			"spare", true, true},
		{"an object without pods", `{kind: Service, spec: {type: ClusterIP}}`, `{kind: Service, spec: {type: ClusterIP}}`, "spare", true, true},
		{"no spare node", pod, pod, "", true, true},
		{"a spec that runs no containers", pod, pod, "spare", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster, object := clusterOf(session.Settings{}), manifest(t, test.before)
			cluster.session.SpareNode, cluster.runsContainers, cluster.disruptive = test.spare, test.needsNode, test.disruptive
			cluster.place(object)
			encoded, err := yaml.Marshal(object.Object)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(encoded).To(MatchYAML(test.after))
		})
	}
}

func TestSpareNode(t *testing.T) {
	for _, test := range []struct {
		name, spare           string
		needsNode, disruptive bool
		expected              string
	}{
		{"a disruptive spec", "spare", true, true, "spare"},
		{"another spec", "spare", true, false, ""},
		{"a spec that runs no containers", "spare", false, true, ""},
		{"no spare node", "", true, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := clusterOf(session.Settings{})
			cluster.session.SpareNode, cluster.runsContainers, cluster.disruptive = test.spare, test.needsNode, test.disruptive
			NewWithT(t).Expect(cluster.SpareNode()).To(Equal(test.expected))
		})
	}
}
