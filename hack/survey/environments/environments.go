package environments

import corev1 "k8s.io/api/core/v1"

// The requests that must be rejected when policies are in force.
var (
	kyvernoRefuses = refuses(plainPod(), "require-labels", "disallow-latest-tag", "require-requests-limits", "restrict-image-registries",
		"require-ro-rootfs", "disallow-default-namespace")
	gatekeeperRefuses = refuses(plainPod(), "pods-have-team", "internal-images", "containers-have-limits", "no-automount")
	noNodePorts       = refuses(nodePort(), nodePortsRefused)
)

// nodePortsRefused is part of the refusal of a Service with a node port. Preflight tries one without.
const nodePortsRefused = "NodePort are not allowed"

// behindProxy are parts of the reasons for which behaviors with tokens, or over HTTP/2, are skipped behind a proxy.
var behindProxy = []string{"a proxy adds its own credentials", "the server speaks HTTP/1.1"}

// environments are all environments, in the order of the table.
var environments = []environment{
	{
		name:   "plain",
		about:  "Only Kubernetes, for comparison.",
		expect: expectation{passed: 300},
	},
	{
		name:    "restricted-pods",
		about:   "Pod Security enforces the level restricted in all namespaces, by kube-apiserver's admission configuration.",
		options: podSecurity,
		parts:   []part{refuses(plainPod())},
		expect:  expectation{passed: 300, causes: []string{"PodSecurity"}},
	},
	{
		name:   "policies",
		about:  "ValidatingAdmissionPolicies require the label team on pods and workloads, and reserve nodes and volumes for the platform.",
		parts:  []part{apply("policies"), refuses(plainPod())},
		expect: expectation{passed: 120, causes: []string{"require-team", "platform-only"}},
	},
	{
		name:      "policies-with-label",
		about:     "The same policies, with a run that sets the label.",
		parts:     []part{apply("policies"), refuses(plainPod())},
		arguments: []string{"--label", "team=conformance"},
		expect:    expectation{passed: 240, causes: []string{"platform-only"}},
	},
	{
		name:   "unavailable-api",
		about:  "The APIService v1beta1.metrics.k8s.io is unavailable: its Service has no endpoints.",
		parts:  []part{apply("unavailable-api")},
		expect: expectation{passed: 280, code: 4, causes: []string{"v1beta1.metrics.k8s.io"}},
	},
	{
		name:   "governed-namespaces",
		about:  "A controller gives each new namespace a LimitRange, a ResourceQuota and a finalizer, which it releases late.",
		parts:  []part{control("tenancy", &corev1.Namespace{}, governNamespaces)},
		expect: expectation{passed: 200, causes: []string{"LimitRange", "quota", "tenancy.example.com/archive"}, found: []string{"exceeded quota"}},
	},
	{
		name:   "sidecars",
		about:  "A webhook adds a container to each pod that does not opt out the way Istio documents.",
		parts:  []part{injectSidecars(asIstio)},
		expect: expectation{passed: 300, causes: []string{"mesh-proxy", "drops schedulingGroup"}, found: []string{"drops schedulingGroup"}},
	},
	{
		name:   "forced-sidecars",
		about:  "A webhook adds a container to each pod, and no pod can opt out. It drops fields that its Kubernetes libraries do not know.",
		parts:  []part{injectSidecars(noOptOut)},
		expect: expectation{passed: 250, causes: []string{"mesh-proxy", "drops schedulingGroup"}, found: []string{"drops schedulingGroup"}},
	},
	{
		name:   "cloud-nodes",
		about:  "A cloud node controller deletes Nodes that it does not know within 5 s.",
		parts:  []part{control("cloud-node-controller", &corev1.Node{}, deleteUnknownNodes)},
		expect: expectation{passed: 230, causes: []string{"Node"}},
	},
	{
		name:   "evictor",
		about:  "A descheduler evicts pods without an owner some seconds after their creation, unless they opt out.",
		parts:  []part{control("descheduler", &corev1.Pod{}, evictBarePods)},
		expect: expectation{passed: 300, causes: []string{"evict"}},
	},
	{
		name:   "broken-conversion",
		about:  "The conversion webhook of a custom resource with an object does not respond.",
		parts:  []part{apply("broken-conversion")},
		expect: expectation{passed: 280, code: 4, causes: []string{"billing.example.com"}},
	},
	{
		name:   "unreachable-webhooks",
		about:  "Webhooks for unrelated resources, or with failurePolicy Ignore, do not respond.",
		parts:  []part{apply("unreachable-webhooks")},
		expect: expectation{passed: 300},
	},
	{
		name:   "unreachable-pod-webhook",
		about:  "A webhook for pods with failurePolicy Fail does not respond, so that pods cannot be created.",
		parts:  []part{apply("unreachable-pod-webhook"), refuses(plainPod())},
		expect: expectation{passed: 120, causes: []string{"pods.image-mirror.example.com"}},
	},
	{
		name:      "namespace-admin",
		about:     "The credentials are those of the admin of one namespace.",
		parts:     []part{apply("namespace-admin"), as("alice")},
		arguments: []string{"--namespace", "team-a"},
		expect:    expectation{passed: 150, causes: []string{"--namespace", "credentials", "permission", "forbidden: User \"alice\""}, found: []string{"--namespace", "admission that cannot be listed"}},
	},
	{
		name:   "tracked-configmaps",
		about:  "A policy adds the finalizer cloud.example.com/free to each ConfigMap, and a controller releases it 2 s after a delete.",
		parts:  []part{apply("finalizer"), addsFinalizer, control("cloud", &corev1.ConfigMap{}, releaseConfigMaps)},
		expect: expectation{passed: 120, causes: []string{configMapFinalizer}, found: []string{`"kube-root-ca.crt"`}},
	},
	{
		name:   "abandoned-configmaps",
		about:  "A policy adds the finalizer cloud.example.com/free to each ConfigMap, and no controller releases it: the run must not remove it, and must report the remaining objects.",
		parts:  []part{apply("finalizer"), addsFinalizer, guardConfigMaps},
		expect: expectation{passed: 100, code: 4, causes: []string{configMapFinalizer}, found: []string{`"kube-root-ca.crt"`}},
	},
	{
		name:   "kyverno",
		about:  "Kyverno enforces policies after those that it publishes as best practices: labels, tags, limits, registries, read-only root filesystems, no node ports, no host paths, no bare pods, not in the namespace default.",
		parts:  []part{installKyverno, apply("kyverno-policies"), apply("kyverno-bare-pods"), kyvernoRefuses, refuses(plainPod(), "prevent-bare-pods"), noNodePorts},
		expect: expectation{passed: 120, causes: []string{"kyverno"}, found: []string{nodePortsRefused}},
	},
	{
		name:      "kyverno-with-flags",
		about:     "The same policies, but for the one about bare pods, with a run that satisfies them.",
		parts:     []part{installKyverno, apply("kyverno-policies"), kyvernoRefuses, noNodePorts},
		arguments: []string{"--label", "app.kubernetes.io/name=conformance", "--image-registry", "registry.example.com", "--pod-overlay", "hack/survey/environments/read-only.yaml"},
		expect:    expectation{passed: 240, causes: []string{"kyverno"}, found: []string{nodePortsRefused}},
	},
	{
		name:   "gatekeeper",
		about:  "Gatekeeper enforces constraints like those of its library: labels, repositories, limits, no node ports, no token that is mounted automatically.",
		parts:  []part{installGatekeeper, apply("gatekeeper-policies"), gatekeeperRefuses, noNodePorts},
		expect: expectation{passed: 120, causes: []string{"gatekeeper"}, found: []string{nodePortsRefused, "failed to configure policy"}},
	},
	{
		name:      "gatekeeper-with-flags",
		about:     "The same constraints, and one that requires a label of namespaces, with a run that satisfies them.",
		parts:     []part{installGatekeeper, apply("gatekeeper-policies"), apply("gatekeeper-namespaces"), gatekeeperRefuses, noNodePorts, refuses(plainNamespace())},
		arguments: []string{"--label", "team=conformance", "--namespace-label", "team=conformance", "--image-registry", "registry.example.com"},
		expect:    expectation{passed: 240, causes: []string{"gatekeeper"}, found: []string{nodePortsRefused, "failed to configure policy"}},
	},
	{
		name:      "ipv6-only",
		about:     "Services have addresses of IPv6 only.",
		options:   flags("--service-cluster-ip-range=fd12:3456::/112", "--advertise-address=fd00::2"),
		parts:     []part{onlyIPv6},
		arguments: []string{"--disruptive"},
		expect:    expectation{passed: 300},
	},
	{
		name:   "nodes-without-room",
		about:  "The Ready nodes take no pod of the run: one runs Windows, one has a taint, and one has no room.",
		parts:  []part{apply("nodes"), control("kubelets", &corev1.Node{}, beReady)},
		expect: expectation{passed: 300, causes: []string{"no node runs a pod of the run: 0/3 nodes are available"}},
	},
	{
		name:    "without-policy",
		about:   "The API group policy is not served. The scheduler does not start without it.",
		options: flags("--runtime-config=policy/v1=false"),
		expect:  expectation{passed: 300, causes: []string{"no scheduler handled a pod"}, found: []string{"no scheduler handled a pod"}},
	},
	{
		name:   "without-kube-public",
		about:  "The namespace kube-public does not exist.",
		parts:  []part{throughProxy(kubePublic)},
		expect: expectation{passed: 300, causes: behindProxy},
	},
	{
		name:   "without-basic-user",
		about:  "The ClusterRoleBinding system:basic-user does not exist: users cannot review their own access.",
		parts:  []part{deleteBasicUser},
		expect: expectation{passed: 300},
	},
	{
		name:   "control-plane-kinds",
		about:  "The API serves only the kinds of a kcp workspace: namespaces, ConfigMaps, Secrets, ServiceAccounts, RBAC, CustomResourceDefinitions, quotas and admission.",
		parts:  []part{throughProxy(isNotServedByKCP)},
		expect: expectation{passed: 180, causes: behindProxy},
	},
	{
		name:   "clock-skew",
		about:  "The clock of the runner is 90 s ahead of the cluster's.",
		parts:  []part{ahead},
		expect: expectation{passed: 300, causes: []string{"clock"}},
	},
	{
		name:    "busy-controllers",
		about:   "Each controller does one thing at a time, with 10 requests a second, while others delete hundreds of namespaces.",
		options: busyControllers,
		parts:   []part{deleteNamespaces},
		expect:  expectation{passed: 300, causes: []string{"pod garbage collector", "held one of its requests"}, found: []string{"pod garbage collector", "held one of its requests"}},
	},
	{
		name:    "forced-sidecars-on-a-node",
		about:   "A webhook adds a container to each pod, no pod can opt out, and a real node runs the pods.",
		options: realNode,
		parts:   []part{injectSidecars(noOptOut)},
		expect:  expectation{passed: 270, causes: []string{"mesh-proxy", "drops schedulingGroup"}, found: []string{"drops schedulingGroup"}},
	},
	{
		name:    "sidecars-on-a-node",
		about:   "A webhook adds a container to each pod that does not opt out, and a real node runs the pods.",
		options: realNode,
		parts:   []part{injectSidecars(asIstio)},
		expect:  expectation{passed: 330, causes: []string{"mesh-proxy", "drops schedulingGroup"}, found: []string{"drops schedulingGroup"}},
	},
}
