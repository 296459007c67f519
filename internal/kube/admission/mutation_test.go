package admission_test

import (
	"slices"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
)

// object reads a manifest.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &content); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

const (
	sentPod = `{spec: {containers: [{name: main, image: x}], tolerations: [{key: a, operator: Exists}]}}`
	// defaultedPod is the same pod after the API server's defaulting and built-in admission plugins.
	defaultedPod = `{metadata: {labels: {by: others}, annotations: {by: others}}, spec: {terminationGracePeriodSeconds: 30, schedulerName: default-scheduler, priority: 0,
		containers: [{name: main, image: mirror/x, imagePullPolicy: Always, resources: {limits: {cpu: 1}}, securityContext: {runAsUser: 5}}],
		imagePullSecrets: [{name: pull}],
		tolerations: [{key: a, operator: Exists}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, {key: b, effect: NoSchedule}]}}`
)

func TestChanges(t *testing.T) {
	for _, test := range []struct {
		name, sent, returned string
		want                 []string
	}{
		{"defaulting", sentPod, defaultedPod, nil},
		{"finalizer", `{metadata: {finalizers: [own]}}`, `{metadata: {finalizers: [cloud.example.com/free, kubernetes.io/pvc-protection]}}`,
			[]string{`adds finalizer "cloud.example.com/free"`, `drops finalizer "own"`}},
		{"owner", `{metadata: {}}`, `{metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: n, uid: u}]}}`, []string{"changes the owner references"}},
		{"containers", sentPod, `{spec: {terminationGracePeriodSeconds: 30, schedulerName: default-scheduler, tolerations: [{key: a, operator: Exists}],
			containers: [{name: main, lifecycle: {preStop: {sleep: {seconds: 5}}}}, {name: proxy}], initContainers: [{name: init}]}}`,
			[]string{`changes the lifecycle hooks of container "main"`, `adds container "proxy"`, `adds initContainer "init"`}},
		{"scheduling", sentPod, `{spec: {terminationGracePeriodSeconds: 5, schedulerName: own, nodeName: node-1, containers: [{name: main}],
			tolerations: [{key: a, operator: Exists}, {operator: Exists}, {key: b, effect: NoExecute}]}}`,
			[]string{"sets terminationGracePeriodSeconds to 5", "sets nodeName to node-1", "sets schedulerName to own", "adds a toleration of every taint", "adds a toleration of b"}},
		{"negative grace, which the server corrects", `{spec: {terminationGracePeriodSeconds: -5, containers: []}}`,
			`{spec: {terminationGracePeriodSeconds: 1, schedulerName: default-scheduler, containers: []}}`, nil},
		{"template", `{spec: {template: {spec: {containers: [{name: main}]}}}}`,
			`{spec: {template: {spec: {terminationGracePeriodSeconds: 60, schedulerName: default-scheduler, containers: [{name: main}]}}}}`,
			[]string{"sets terminationGracePeriodSeconds to 60"}},
		{"what a webhook of an older Kubernetes does not know", `{spec: {schedulingGroup: {podGroupName: x}, hostNetwork: false, volumes: [], containers: [{name: main}]}}`,
			`{spec: {terminationGracePeriodSeconds: 30, schedulerName: default-scheduler, containers: [{name: main}]}}`, []string{"drops schedulingGroup"}},
		{"no pod", `{spec: {replicas: 1}}`, `{spec: {replicas: 1, schedulerName: x}}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, change := range admission.Changes(object(t, test.sent), object(t, test.returned)) {
				got = append(got, change.Text)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("want %q\ngot  %q", test.want, got)
			}
		})
	}
}

func TestMutators(t *testing.T) {
	webhooks := admission.MutatorOf(object(t, `{kind: MutatingWebhookConfiguration, metadata: {name: inject}, webhooks: [
		{name: a, rules: [{operations: [CREATE], apiGroups: [""], apiVersions: ["*"], resources: [pods]}, {operations: [UPDATE], apiGroups: [apps], resources: ["*"]}]}]}`))
	policy := admission.MutatorOf(object(t, `{kind: MutatingAdmissionPolicy, metadata: {name: all}, spec: {matchConstraints: {
		resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: [v1], resources: ["*/*"]}]}}}`))
	for _, test := range []struct {
		name     string
		mutators admission.Mutators
		group    string
		resource string
		want     string
	}{
		{"webhook", admission.Mutators{Known: []admission.Mutator{webhooks}}, "", "pods", `MutatingWebhookConfiguration "inject"`},
		{"only of updates", admission.Mutators{Known: []admission.Mutator{webhooks}}, "apps", "deployments", ""},
		{"both", admission.Mutators{Known: []admission.Mutator{webhooks, policy}}, "", "pods", `MutatingWebhookConfiguration "inject" or MutatingAdmissionPolicy "all"`},
		{"everything", admission.Mutators{Known: []admission.Mutator{policy}}, "batch", "jobs", `MutatingAdmissionPolicy "all"`},
		{"nobody", admission.Mutators{}, "", "pods", ""},
		{"unknown", admission.Mutators{Hidden: "somebody"}, "", "pods", "somebody"},
		{"a static one", admission.Mutators{Known: []admission.Mutator{{Kind: "K", Name: "n", Rules: []registrationv1.Rule{{}}}}}, "", "pods", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := test.mutators.By(schema.GroupVersionResource{Group: test.group, Version: "v1", Resource: test.resource})
			if got != test.want || ok != (test.want != "") {
				t.Errorf("want %q, got %q (%t)", test.want, got, ok)
			}
		})
	}
}

func TestIsBuiltIn(t *testing.T) {
	for finalizer, builtIn := range map[string]bool{
		"customresourcecleanup.apiextensions.k8s.io": true, // no name
		"kubernetes.io/pvc-protection":               true,
		"cloud.example.com/free":                     false,
		"notkubernetes.io/free":                      false,
	} {
		if admission.IsBuiltIn(finalizer) != builtIn {
			t.Errorf("IsBuiltIn(%q) is %t", finalizer, !builtIn)
		}
	}
}
