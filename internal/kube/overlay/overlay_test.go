package overlay

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// decode decodes an object from YAML.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestComplete(t *testing.T) {
	const team, marked = `{team: x}`, `metadata: {labels: {team: x}, annotations: {note: "1"}}`
	for _, test := range []struct{ name, object, want string }{
		{"an object", `{kind: ConfigMap, metadata: {name: a}}`, `{kind: ConfigMap, metadata: {name: a, labels: {team: x}, annotations: {note: "1"}}}`},
		{"an object without metadata", `{kind: ConfigMap}`, `{kind: ConfigMap, ` + marked + `}`},
		{"its own labels stay", `{kind: ConfigMap, metadata: {labels: {team: own}}}`,
			`{kind: ConfigMap, metadata: {labels: {team: own}, annotations: {note: "1"}}}`},
		{"a namespace", `{kind: Namespace}`, `{kind: Namespace, metadata: {labels: {team: x, level: high}, annotations: {note: "1"}}}`},
		{"the pods of a workload", `{kind: Deployment, spec: {template: {spec: {containers: [{name: main}]}}}}`,
			`{kind: Deployment, ` + marked + `, spec: {template: {` + marked + `, spec: {containers: [{name: main}]}}}}`},
		{"the jobs of a CronJob and their pods", `{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: main}]}}}}}}`,
			`{kind: CronJob, ` + marked + `, spec: {jobTemplate: {` + marked + `, spec: {template: {` + marked + `, spec: {containers: [{name: main}]}}}}}}`},
		{"claims", `{kind: StatefulSet, spec: {volumeClaimTemplates: [{spec: {}}]}}`,
			`{kind: StatefulSet, ` + marked + `, spec: {volumeClaimTemplates: [{` + marked + `, spec: {}}]}}`},
		{"claims of a pod", `{kind: Pod, spec: {volumes: [{ephemeral: {volumeClaimTemplate: {spec: {}}}}]}}`,
			`{kind: Pod, ` + marked + `, spec: {volumes: [{ephemeral: {volumeClaimTemplate: {` + marked + `, spec: {}}}}]}}`},
		{"resource claims", `{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, spec: {spec: {}}}`,
			`{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, ` + marked + `, spec: {` + marked + `, spec: {}}}`},
		{"no schema of a definition", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {template: {metadata: {}, spec: {}}}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, ` + marked + `, spec: {template: {metadata: {}, spec: {}}}}`},
		{"no field of a custom resource that is called a template", `{kind: Certificate, spec: {secretTemplate: {labels: {}}, template: {spec: {}}}}`,
			`{kind: Certificate, ` + marked + `, spec: {secretTemplate: {labels: {}}, template: {spec: {}}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			added := Overlay{Labels: map[string]string{"team": "x"}, Annotations: map[string]string{"note": "1"}, NamespaceLabels: map[string]string{"level": "high"}}
			given := &unstructured.Unstructured{Object: decode(t, test.object)}

			once, err := added.Complete(given)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(once.Object).To(Equal(decode(t, test.want)))
			g.Expect(given.Object).To(Equal(decode(t, test.object)), "the object itself is not changed")

			twice, err := added.Complete(once)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(twice).To(Equal(once))
		})
	}
}

func TestComplete_Pods(t *testing.T) {
	for _, test := range []struct{ name, patch, object, want string }{
		{"fields of the spec", `{spec: {runtimeClassName: r, nodeSelector: {pool: a}, securityContext: {runAsUser: null, fsGroup: 7}}}`,
			`{kind: Pod, spec: {nodeSelector: {own: "1"}, securityContext: {runAsUser: 1, runAsNonRoot: true}, containers: [{name: main}]}}`,
			`{kind: Pod, spec: {runtimeClassName: r, nodeSelector: {own: "1", pool: a}, securityContext: {runAsNonRoot: true, fsGroup: 7}, containers: [{name: main}]}}`},
		{"tolerations are added", `{spec: {tolerations: [{key: a}, {key: own}]}}`,
			`{kind: Pod, spec: {tolerations: [{key: own}], containers: [{name: main}]}}`,
			`{kind: Pod, spec: {tolerations: [{key: own}, {key: a}], containers: [{name: main}]}}`},
		{"containers by name, and none that is not there", `{spec: {containers: [{name: "*", imagePullPolicy: Never}, {name: other, env: [{name: A, value: b}]}, {name: absent}]}}`,
			`{kind: Pod, spec: {containers: [{name: main, image: i}, {name: other}]}}`,
			`{kind: Pod, spec: {containers: [{name: main, image: i, imagePullPolicy: Never}, {name: other, imagePullPolicy: Never, env: [{name: A, value: b}]}]}}`},
		{"templates of templates", `{metadata: {labels: {team: x}}, spec: {imagePullSecrets: [{name: s}]}}`,
			`{kind: CronJob, spec: {jobTemplate: {spec: {template: {metadata: {labels: {team: own}}, spec: {containers: [{name: main}]}}}}}}`,
			`{kind: CronJob, spec: {jobTemplate: {spec: {template: {metadata: {labels: {team: own}}, spec: {imagePullSecrets: [{name: s}], containers: [{name: main}]}}}}}}`},
		{"mirror pods may not refer to secrets", `{spec: {imagePullSecrets: [{name: s}], runtimeClassName: r}}`,
			`{kind: Pod, metadata: {annotations: {kubernetes.io/config.mirror: "1"}}, spec: {containers: [{name: main}]}}`,
			`{kind: Pod, metadata: {annotations: {kubernetes.io/config.mirror: "1"}}, spec: {runtimeClassName: r, containers: [{name: main}]}}`},
		{"simulated nodes match", `{spec: {nodeSelector: {pool: a}}}`, `{kind: Node}`, `{kind: Node, metadata: {labels: {pool: a}}}`},
		{"other objects stay", `{spec: {nodeSelector: {pool: a}}}`, `{kind: Prometheus, spec: {containers: [{name: main}]}}`,
			`{kind: Prometheus, spec: {containers: [{name: main}]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			patch, err := DecodePod([]byte(test.patch))
			g.Expect(err).NotTo(HaveOccurred())
			added := Overlay{Pod: patch}
			g.Expect(added.Check("example.org", Names{})).To(Succeed())
			want, err := DecodePod([]byte(test.want))
			g.Expect(err).NotTo(HaveOccurred())

			once, err := added.Complete(&unstructured.Unstructured{Object: decode(t, test.object)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(once.Object).To(Equal(want))
			twice, err := added.Complete(once)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(twice).To(Equal(once))
			g.Expect(added.Pod).To(Equal(patch), "the patch itself is not changed")
		})
	}
}

func TestCheck_Refused(t *testing.T) {
	names := Names{Labels: "--label", Annotations: "--annotation", NamespaceLabels: "--namespace-label", Pod: "--pod-overlay f"}
	for _, test := range []struct {
		name string
		Overlay
		want string
	}{
		{"a label's key", Overlay{Labels: map[string]string{"a b": "c"}}, "--label: Invalid value"},
		{"a label's value", Overlay{Labels: map[string]string{"a": "c d"}}, "--label: Invalid value"},
		{"an annotation's key", Overlay{Annotations: map[string]string{"a/b/c": "d"}}, "--annotation: Invalid value"},
		{"the label of a namespace", Overlay{NamespaceLabels: map[string]string{"": "d"}}, "--namespace-label: Invalid value"},
		{"the runner's own domain", Overlay{Labels: map[string]string{"own.example/run": "x"}}, "--label own.example/run: the domain own.example is the runner's own"},
		{"a domain below it", Overlay{Annotations: map[string]string{"a.own.example/run": "x"}}, "the runner's own"},
		{"a label of a controller", Overlay{Labels: map[string]string{"pod-template-hash": "x"}}, "Kubernetes' own components use it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(test.Check("own.example", names)).To(MatchError(And(ContainSubstring(test.want), Not(ContainSubstring("\n")))))
		})
	}
	for _, test := range []struct{ patch, want string }{
		{`{spec: {terminationGracePeriodSeconds: 1}}`, "--pod-overlay f: spec.terminationGracePeriodSeconds: a pod overlay may not set it: grace periods are tested"},
		{`{spec: {restartPolicy: Never}}`, "spec.restartPolicy"},
		{`{spec: {nodeName: a}}`, "use nodeSelector"},
		{`{spec: {nodename: a}}`, `unknown field "spec.nodename"`},
		{`{spec: {nodeSelector: [a]}}`, "it is not a patch of a pod"},
		{`{spec: {nodeSelector: {own.example/a: b}}}`, "the runner's own"},
		{`{spec: {nodeSelector: {a: null}}}`, "spec.nodeSelector.a: null removes a field"},
		{`{spec: {$patch: replace}}`, "$patch"},
		{`{spec: {containers: []}}`, "may not remove containers"},
		{`{spec: {containers: [{name: main, $patch: delete}]}}`, "$patch"},
		{`{spec: {containers: [{image: a}]}}`, "it has no name"},
		{`{spec: {containers: [{name: main, lifecycle: {}}]}}`, "spec.containers[0].lifecycle"},
		{`{spec: {tolerations: [{operator: Exists}]}}`, "it tolerates every NoExecute taint"},
		{`{spec: {tolerations: [{key: own.example/evicts}]}}`, "the runner's own"},
		{`{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}}`, "use nodeSelector"},
		{`{metadata: {finalizers: [a]}}`, "metadata.finalizers"},
		{`{metadata: {ownerReferences: []}}`, "metadata.ownerReferences"},
		{`{metadata: {labels: {own.example/a: b}}}`, "metadata.labels own.example/a"},
		{`{metadata: {annotations: {kubernetes.io/config.mirror: b}}}`, "Kubernetes' own components"},
		{`{kind: Deployment}`, "kind Deployment"},
		{`{status: {phase: Running}}`, "status"},
	} {
		t.Run(test.patch, func(t *testing.T) {
			g := NewWithT(t)
			patch, err := DecodePod([]byte(test.patch))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(Overlay{Pod: patch}.Check("own.example", names)).To(MatchError(And(ContainSubstring(test.want), Not(ContainSubstring("\n")))))
		})
	}
}

func TestDecodePod_Comment(t *testing.T) {
	patch, err := DecodePod([]byte("# of our cluster\n---\nspec:\n  runtimeClassName: r\n---\n"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(patch).To(Equal(map[string]any{"spec": map[string]any{"runtimeClassName": "r"}}))
}

func TestDecodePod_Invalid(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"nothing", "", "it is empty"},
		{"a comment", "# nothing\n", "it is empty"},
		{"a list", "- a\n", "it is not an object"},
		{"no YAML", "{a: [b}\n", "yaml: "},
		{"a key twice", "a: 1\na: 2\n", "already"},
		{"several documents", "a: 1\n---\nb: 1\n", "several documents"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "patch.yaml")
			g.Expect(os.WriteFile(file, []byte(test.content), 0o600)).To(Succeed())
			_, err := ReadPod(file)
			g.Expect(err).To(MatchError(And(ContainSubstring(test.want), Not(ContainSubstring("\n")))))
		})
	}
}
