package main

// environments are all environments, in the order of the table.
var environments = []environment{
	{
		name:   "plain",
		about:  "Nothing but Kubernetes, to compare with.",
		expect: expectation{passed: 300},
	},
	{
		name:    "restricted-pods",
		about:   "Pod Security enforces the level restricted in all namespaces, by kube-apiserver's admission configuration.",
		options: podSecurity,
		parts:   []part{awaitRefusal},
		expect:  expectation{passed: 300, causes: []string{"PodSecurity"}},
	},
	{
		name:   "policies",
		about:  "ValidatingAdmissionPolicies require the label team on pods and workloads, and reserve nodes and volumes for the platform.",
		parts:  []part{apply("policies"), awaitRefusal},
		expect: expectation{passed: 120, causes: []string{"require-team", "platform-only"}},
	},
	{
		name:      "policies-with-label",
		about:     "The same policies, with a run that sets the label.",
		parts:     []part{apply("policies"), awaitRefusal},
		arguments: []string{"--label", "team=conformance"},
		expect:    expectation{passed: 240, causes: []string{"platform-only"}},
	},
	{
		name:   "unavailable-api",
		about:  "The APIService v1beta1.metrics.k8s.io is unavailable: its Service has no endpoints.",
		parts:  []part{apply("unavailable-api")},
		expect: expectation{passed: 230, causes: []string{"v1beta1.metrics.k8s.io"}},
	},
}
