package admission_test

import (
	"strings"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
)

func TestRead(t *testing.T) {
	for _, test := range []struct{ name, message, want string }{
		{
			"policy, 1.28 and later",
			`pods "p-abc" is forbidden: ValidatingAdmissionPolicy 'team' with binding 'team-all' denied request: every pod needs a label team`,
			`refused by ValidatingAdmissionPolicy "team": every pod needs a label team`,
		}, {
			"policy, 1.26", `pods "p" is forbidden: ValidatingAdmissionPolicy 'team' denied request: failed expression: false`,
			`refused by ValidatingAdmissionPolicy "team": failed expression: false`,
		}, {
			"policy without a parameter", `nodes "n" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: failed to configure binding: no params found`,
			`refused by ValidatingAdmissionPolicy "x": failed to configure binding: no params found`,
		}, {
			"mutating policy", `policy 'inject' with binding 'all' denied request: composited variable "a" fails`,
			`refused by MutatingAdmissionPolicy "inject": composited variable "a" fails`,
		}, {
			"mutating policy without a binding", `policy "inject" denied request: failed to configure policy`,
			`refused by MutatingAdmissionPolicy "inject": failed to configure policy`,
		}, {
			"webhook of Kyverno",
			"admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource Pod/ns/p was blocked due to the following policies \n\nrequire-team:\n  check: 'validation error'",
			`refused by webhook "validate.kyverno.svc-fail": resource Pod/ns/p was blocked due to the following policies require-team: check: 'validation error'`,
		}, {
			"webhook of Gatekeeper", `admission webhook "validation.gatekeeper.sh" denied the request: [must-have-team] you must provide labels: {"team"}`,
			`refused by webhook "validation.gatekeeper.sh": [must-have-team] you must provide labels: {"team"}`,
		}, {
			"webhook without a word", `admission webhook "a.example.com" denied the request without explanation`,
			`refused by webhook "a.example.com": without explanation`,
		}, {
			"unreachable webhook",
			`Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://a.ns.svc:443/v?timeout=10s": no endpoints available for service "a"`,
			`refused by webhook "a.example.com": failed calling webhook "a.example.com": failed to call webhook: Post "https://a.ns.svc:443/v?timeout=10s": no endpoints available for service "a"`,
		}, {
			"quota", `pods "p" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4`,
			`refused by ResourceQuota "compute": exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4`,
		}, {
			"quota of compute resources", `pods "p" is forbidden: failed quota: compute: must specify limits.cpu for: main; limits.memory for: main`,
			`refused by ResourceQuota "compute": failed quota: compute: must specify limits.cpu for: main; limits.memory for: main`,
		}, {
			"quota that is new", `configmaps "c" is forbidden: status unknown for quota: counts, resources: count/configmaps`,
			`refused by ResourceQuota "counts": status unknown for quota: counts, resources: count/configmaps`,
		}, {
			"quota configuration", `pods "p" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [high]}]`,
			`refused by ResourceQuota: insufficient quota to match these scopes: [{PriorityClass In [high]}]`,
		}, {
			"limit range",
			`pods "p" is forbidden: [minimum memory usage per Container is 100Mi, but request is 4Mi, minimum cpu usage per Container is 50m, but request is 1m]`,
			`refused by LimitRange: minimum memory usage per Container is 100Mi, but request is 4Mi, minimum cpu usage per Container is 50m, but request is 1m]`,
		}, {
			"ratio of a limit range", `pods "p" is forbidden: cpu max limit to request ratio per Container is 4, but provided ratio is 100.000000`,
			`refused by LimitRange: cpu max limit to request ratio per Container is 4, but provided ratio is 100.000000`,
		}, {
			"Pod Security", `pods "p" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set it)`,
			`refused by PodSecurity: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set it)`,
		}, {
			"OpenShift", `pods "p" is forbidden: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable by user]`,
			`refused by SecurityContextConstraints: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable by user]`,
		}, {
			"event of a controller", `Error creating: pods "rs-" is forbidden: exceeded quota: full, requested: pods=1, used: pods=0, limited: pods=0`,
			`refused by ResourceQuota "full": exceeded quota: full, requested: pods=1, used: pods=0, limited: pods=0`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			refusal, ok := admission.Read(test.message)
			if !ok || refusal.String() != test.want {
				t.Errorf("want %s\ngot  %s (%t)", test.want, refusal, ok)
			}
		})
	}
}

func TestRead_OtherRefusals(t *testing.T) {
	for _, message := range []string{
		"",
		`pods is forbidden: User "u" cannot create resource "pods" in API group "" in the namespace "n"`,
		`configmaps "c" is forbidden: unable to create new content in namespace n because it is being terminated`,
		`namespaces "kube-system" is forbidden: this namespace may not be deleted`,
		`configmaps "c" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`,
		`Operation cannot be fulfilled on resourcequotas "q": the object has been modified`,
		`priorityclasses "p" is forbidden: maximum allowed value of a user defined priority is 1000000000`,
		`Cannot evict pod as it would violate the pod's disruption budget.`,
	} {
		if refusal, ok := admission.Read(message); ok {
			t.Errorf("%s: want none, got %s", message, refusal)
		}
	}
}

func TestRefusal_LongMessage(t *testing.T) {
	refusal, _ := admission.Read(`admission webhook "a" denied the request: ` + strings.Repeat("ä", 1000))
	if len(refusal.Message) > 310 || !strings.HasSuffix(refusal.Message, "ä...") {
		t.Errorf("%d bytes: %s", len(refusal.Message), refusal.Message)
	}
}

func TestRead_DryRunOnly(t *testing.T) {
	refusal, ok := admission.Read(`admission webhook "a.example.com" does not support dry run`)
	if !ok || !refusal.OnlyDryRun {
		t.Errorf("got %+v", refusal)
	}
}

func TestUnattributed(t *testing.T) {
	want := "refused by an admission plugin: pod node label selector conflicts with its namespace node label selector"
	got := admission.Unattributed(`pods "p" is forbidden: pod node label selector conflicts with its namespace node label selector`).String()
	if got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}
