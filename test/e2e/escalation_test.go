package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
)

// attempt is a request by which a stolen token would be used outside of its runs.
type attempt struct {
	method, path, body string
	// as is the user and the group to impersonate.
	as, group string
}

// at returns the attempt in a namespace, and on an object of a name.
func (a attempt) at(namespace, name string) attempt {
	placed := strings.NewReplacer("NAMESPACE", namespace, "NAME", name)
	a.path, a.body = placed.Replace(a.path), placed.Replace(a.body)
	return a
}

// result sends the request and returns the status code and the error.
func (a attempt) result(t *testing.T, from kubernetes.Interface, dryRun ...string) (code int, err error) {
	t.Helper()
	request := from.Discovery().RESTClient().Verb(a.method).AbsPath(a.path).SetHeader("Content-Type", "application/json")
	if a.method == http.MethodPatch {
		request = request.SetHeader("Content-Type", "application/merge-patch+json")
	}
	if a.body != "" {
		request = request.Body([]byte(a.body))
	}
	if a.as != "" {
		request = request.SetHeader("Impersonate-User", a.as)
	}
	if a.group != "" {
		request = request.SetHeader("Impersonate-Group", a.group)
	}
	for _, all := range dryRun {
		request = request.Param("dryRun", all)
	}
	err = request.Do(t.Context()).StatusCode(&code).Error()
	return code, err
}

const (
	roles    = "/apis/rbac.authorization.k8s.io/v1"
	admits   = "/apis/admissionregistration.k8s.io/v1"
	inSystem = "/api/v1/namespaces/kube-system"
	toAdmin  = `{"metadata":{"name":"escalation"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"mallory"}]}`
	everything     = `{"metadata":{"name":"escalation"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`
	aPod           = `{"metadata":{"name":"escalation"},"spec":{"containers":[{"name":"main","image":"x.example.com/x"}]}}`
	aPrivilegedPod = `{"metadata":{"name":"escalation"},"spec":{"containers":[{"name":"main","image":"x.example.com/x","securityContext":{"privileged":true}}]}}`
	aHook          = `{"metadata":{"name":"escalation"},"webhooks":[{"name":"x.example.com","sideEffects":"None","admissionReviewVersions":["v1"],` +
		`"clientConfig":{"url":"https://x.example.com"},"rules":[{"apiGroups":["none.example.com"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]}]}`
	anAPI = `{"metadata":{"name":"v1.escalation.example.com"},"spec":{"group":"escalation.example.com","version":"v1","groupPriorityMinimum":1,` +
		`"versionPriority":1,"service":{"namespace":"default","name":"x"},"insecureSkipTLSVerify":true}}`
	aDefinition = `{"metadata":{"name":"xs.escalation.example.com"},"spec":{"group":"escalation.example.com","scope":"Namespaced",` +
		`"names":{"plural":"xs","kind":"X"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	aRequest = `{"metadata":{"name":"escalation"},"spec":{"request":"LS0t","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}}`
	aToken   = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{}}`
	aVolume  = `{"metadata":{"name":"escalation"},"spec":{"capacity":{"storage":"1Ki"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/"}}}`
)

// escalations are attempts to become cluster-admin, or to reach what others have.
var escalations = map[string]attempt{
	"bind cluster-admin":                     {http.MethodPost, roles + "/clusterrolebindings", toAdmin, "", ""},
	"bind cluster-admin in its namespace":    {http.MethodPost, roles + "/namespaces/NAMESPACE/rolebindings", toAdmin, "", ""},
	"bind cluster-admin in kube-system":      {http.MethodPost, roles + "/namespaces/kube-system/rolebindings", toAdmin, "", ""},
	"bind its own role in kube-system":       {http.MethodPost, roles + "/namespaces/kube-system/rolebindings", strings.ReplaceAll(toAdmin, "cluster-admin", "deletion-conformance-inside"), "", ""},
	"make a ClusterRole":                     {http.MethodPost, roles + "/clusterroles", everything, "", ""},
	"make a Role in its namespace":           {http.MethodPost, roles + "/namespaces/NAMESPACE/roles", everything, "", ""},
	"change a ClusterRole":                   {http.MethodPatch, roles + "/clusterroles/system:discovery", `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`, "", ""},
	"impersonate system:masters":             {http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, "mallory", "system:masters"},
	"impersonate an administrator":           {http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, "kubernetes-admin", ""},
	"impersonate a controller":               {http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, "system:serviceaccount:kube-system:clusterrole-aggregation-controller", ""},
	"impersonate a node":                     {http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, "system:node:x", "system:nodes"},
	"get a token in kube-system":             {http.MethodPost, inSystem + "/serviceaccounts/default/token", aToken, "", ""},
	"get a token in the namespace default":   {http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/default/token", aToken, "", ""},
	"create a pod in kube-system":            {http.MethodPost, inSystem + "/pods", aPod, "", ""},
	"exec in kube-system":                    {http.MethodPost, inSystem + "/pods/x/exec", "", "", ""},
	"debug a pod in kube-system":             {http.MethodPatch, inSystem + "/pods/x/ephemeralcontainers", `{}`, "", ""},
	"reach a pod of kube-system":             {http.MethodGet, inSystem + "/pods/x/proxy/", "", "", ""},
	"reach a kubelet":                        {http.MethodGet, "/api/v1/nodes/x/proxy/pods", "", "", ""},
	"read all Secrets":                       {http.MethodGet, "/api/v1/secrets", "", "", ""},
	"read Secrets in kube-system":            {http.MethodGet, inSystem + "/secrets", "", "", ""},
	"write a ConfigMap in kube-system":       {http.MethodPost, inSystem + "/configmaps", `{"metadata":{"name":"escalation"}}`, "", ""},
	"create a Job in kube-system":            {http.MethodPost, "/apis/batch/v1/namespaces/kube-system/jobs", `{"metadata":{"name":"escalation"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"x.example.com/x"}]}}}}`, "", ""},
	"request a certificate":                  {http.MethodPost, "/apis/certificates.k8s.io/v1/certificatesigningrequests", aRequest, "", ""},
	"approve a certificate":                  {http.MethodPut, "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", aRequest, "", ""},
	"register a mutating webhook":            {http.MethodPost, admits + "/mutatingwebhookconfigurations", aHook, "", ""},
	"register a validating webhook":          {http.MethodPost, admits + "/validatingwebhookconfigurations", aHook, "", ""},
	"create a policy":                        {http.MethodPost, admits + "/validatingadmissionpolicies", `{"metadata":{"name":"escalation"},"spec":{"validations":[{"expression":"true"}],"matchConstraints":{"resourceRules":[{"apiGroups":["none.example.com"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]}}}`, "", ""},
	"delete a policy":                        {http.MethodDelete, admits + "/validatingadmissionpolicies/boundary", "", "", ""},
	"delete the binding of a policy":         {http.MethodDelete, admits + "/validatingadmissionpolicybindings/boundary", "", "", ""},
	"register an API":                        {http.MethodPost, "/apis/apiregistration.k8s.io/v1/apiservices", anAPI, "", ""},
	"define a kind":                          {http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", aDefinition, "", ""},
	"create a Node":                          {http.MethodPost, "/api/v1/nodes", `{"metadata":{"name":"escalation"}}`, "", ""},
	"create a volume of the host":            {http.MethodPost, "/api/v1/persistentvolumes", aVolume, "", ""},
	"change the labels of its own namespace": {http.MethodPatch, "/api/v1/namespaces/NAMESPACE", `{"metadata":{"labels":{"a":"b"}}}`, "", ""},
	"change the labels of kube-system":       {http.MethodPatch, inSystem, `{"metadata":{"labels":{"a":"b"}}}`, "", ""},
}

// client returns a client and the kubeconfig for a new user.
func (c *cluster) client(t *testing.T, user string) (client kubernetes.Interface, kubeconfig string) {
	t.Helper()
	kubeconfig = c.user(t, user)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return client, kubeconfig
}

// bound puts the boundary of deploy/rbac around a user, and waits until it is effective. It is named after the user.
func (c *cluster) bound(t *testing.T, client kubernetes.Interface, user string) {
	t.Helper()
	c.apply(t, filepath.Join("..", "..", "deploy", "rbac", "boundary", "policy.yaml"),
		"system:serviceaccount:deletion-conformance:deletion-conformance-runner", user, "deletion-conformance-boundary", user)
	NewWithT(t).Eventually(func() bool {
		_, err := client.CoreV1().Namespaces().Create(t.Context(), namespaceNamed("default"), metav1.CreateOptions{})
		return apierrors.IsForbidden(err) // it exists, which is found out later
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(BeTrue())
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// inside creates the role for the inside of the namespaces of runs, of which a cluster has one.
func (c *cluster) inside(t *testing.T) (name string) {
	t.Helper()
	name = "deletion-conformance-inside"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules(t, "clusterrole-self-service.yaml")[name]}
	if _, err := c.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return name
}

// bind gives a user a role in a namespace.
func (c *cluster) bind(t *testing.T, namespace, user, kind, role string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := c.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// grantRole gives a user the permissions of role.yaml in a namespace.
func (c *cluster) grantRole(t *testing.T, namespace, user string) (granted []rbacv1.PolicyRule) {
	t.Helper()
	granted = rules(t, "role.yaml")["deletion-conformance"]
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: granted}
	if _, err := c.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.bind(t, namespace, user, "Role", user)
	return granted
}

// restrictedNamespace is the first namespace of a new run, with a Pod Security Standard.
func restrictedNamespace() *corev1.Namespace {
	namespace := namespaceNamed(environment.NewRunID() + "-1")
	namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	return namespace
}

// withinBoundary gives a user the roles of the boundary, which is put around the user first.
func (c *cluster) withinBoundary(t *testing.T, client kubernetes.Interface, user string) (granted []rbacv1.PolicyRule) {
	t.Helper()
	c.inside(t)
	granted = slices.Concat(rules(t, "boundary/bindings.yaml")["deletion-conformance-bind"],
		rules(t, "clusterrole-self-service.yaml")["deletion-conformance-self-service"])
	c.grant(t, user, granted...)
	c.bound(t, client, user)
	return granted
}

func TestEscalation(t *testing.T) {
	t.Parallel()
	c := shared.in(t)
	for user, grant := range map[string]func(t *testing.T, client kubernetes.Interface, user, namespace string){
		"thief-of-role": func(t *testing.T, _ kubernetes.Interface, user, namespace string) { c.grantRole(t, namespace, user) },
		"thief-of-self-service": func(t *testing.T, _ kubernetes.Interface, user, namespace string) {
			c.grant(t, user, rules(t, "clusterrole-self-service.yaml")["deletion-conformance-self-service"]...)
			c.bind(t, namespace, user, "ClusterRole", c.inside(t))
		},
		"thief-within-boundary": func(t *testing.T, client kubernetes.Interface, user, namespace string) {
			c.withinBoundary(t, client, user)
			c.enter(t, client, user, namespace)
		},
	} {
		t.Run(user, func(t *testing.T) {
			g := NewWithT(t)
			thief, _ := c.client(t, user)
			own, err := c.CoreV1().Namespaces().Create(t.Context(), restrictedNamespace(), metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			grant(t, thief, user, own.Name)
			g.Eventually(func() error {
				_, err := thief.CoreV1().Secrets(own.Name).List(t.Context(), metav1.ListOptions{})
				return err
			}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())

			privileged := attempt{method: http.MethodPost, path: "/api/v1/namespaces/" + own.Name + "/pods", body: aPrivilegedPod}
			code, err := privileged.result(t, thief)
			g.Expect(code).To(Equal(http.StatusForbidden), "a privileged pod: %v", err)
			for name, attempt := range escalations {
				attempt = attempt.at(own.Name, "")
				code, err := attempt.result(t, thief)
				g.Expect(code).To(Equal(http.StatusForbidden), "%s: %v", name, err)
				// On a new cluster, the ServiceAccounts of pods come a little later.
				g.Eventually(func() int { code, _ := attempt.result(t, c, metav1.DryRunAll); return code }).WithTimeout(waitTimeout).WithPolling(polling).
					ShouldNot(Or(Equal(http.StatusForbidden), Equal(http.StatusUnauthorized)), "%s as an administrator", name)
			}
		})
	}
}

// enter binds the role for the inside of a namespace to a user, as a run does.
func (c *cluster) enter(t *testing.T, client kubernetes.Interface, user, namespace string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.inside(t)},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// bounded are writes that the boundary permits in the namespaces of runs, and to objects that are named after a run.
var bounded = map[string]attempt{
	"create a ConfigMap":      {method: http.MethodPost, path: "/api/v1/namespaces/NAMESPACE/configmaps", body: `{"metadata":{"name":"new"}}`},
	"change a ConfigMap":      {method: http.MethodPatch, path: "/api/v1/namespaces/NAMESPACE/configmaps/object", body: `{"metadata":{"labels":{"a":"b"}}}`},
	"delete all Secrets":      {method: http.MethodDelete, path: "/api/v1/namespaces/NAMESPACE/secrets"},
	"delete a ServiceAccount": {method: http.MethodDelete, path: "/api/v1/namespaces/NAMESPACE/serviceaccounts/object"},
	"get a token":             {method: http.MethodPost, path: "/api/v1/namespaces/NAMESPACE/serviceaccounts/object/token", body: aToken},
	"create a Role":           {method: http.MethodPost, path: roles + "/namespaces/NAMESPACE/roles", body: `{"metadata":{"name":"NAME"}}`},
	"change a namespace":      {method: http.MethodPatch, path: "/api/v1/namespaces/NAMESPACE", body: `{"metadata":{"labels":{"a":"b"}}}`},
	"create a ClusterRole":    {method: http.MethodPost, path: roles + "/clusterroles", body: `{"metadata":{"name":"NAME"}}`},
	"delete a ClusterRole":    {method: http.MethodDelete, path: roles + "/clusterroles/NAME"},
	"change a ClusterRole":    {method: http.MethodPut, path: roles + "/clusterroles/NAME", body: `{"metadata":{"name":"NAME","labels":{"a":"b"}}}`},
	"create a PriorityClass":  {method: http.MethodPost, path: "/apis/scheduling.k8s.io/v1/priorityclasses", body: `{"metadata":{"name":"NAME"},"value":1}`},
	"create an Event":         {method: http.MethodPost, path: "/api/v1/namespaces/default/events", body: `{"metadata":{"name":"NAME.1"},"involvedObject":{"name":"NAME","kind":"Node"}}`},
}

func TestBoundary(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user, outside = "bounded-cluster-role", "outside-the-boundary"
	client, _ := c.client(t, user)
	c.grant(t, user, rules(t, "clusterrole.yaml")["deletion-conformance"]...)
	c.bound(t, client, user)
	own, err := client.CoreV1().Namespaces().Create(t.Context(), restrictedNamespace(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().Namespaces().Create(t.Context(), namespaceNamed(outside), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	object := metav1.ObjectMeta{Name: "object"}
	_, err = c.CoreV1().ServiceAccounts(outside).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: object}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().Secrets(outside).Create(t.Context(), &corev1.Secret{ObjectMeta: object}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().ConfigMaps(outside).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: object}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: outside}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	const refused = `ValidatingAdmissionPolicy '` + user + `' with binding '` + user + `' denied request: `

	for name, write := range bounded {
		code, err := write.at(outside, outside).result(t, client)
		g.Expect(code).To(Equal(http.StatusForbidden), "%s: %v", name, err)
		g.Expect(err).To(MatchError(ContainSubstring(refused+"outside the namespaces and objects of runs")), name)
		_, err = write.at(own.Name, own.Name+"-x").result(t, client)
		g.Expect(fmt.Sprint(err)).NotTo(ContainSubstring(refused), name)
	}
	_, err = bounded["get a token"].at(outside, outside).result(t, client, metav1.DryRunAll)
	g.Expect(err).To(MatchError(ContainSubstring(refused+"outside the namespaces and objects of runs")), "a dry-run, which returns a token")
	for name, attempt := range escalations {
		if strings.HasPrefix(name, "impersonate") {
			code, err := attempt.result(t, client)
			g.Expect(code).To(Equal(http.StatusForbidden), "%s: %v", name, err)
		}
	}
	unrestricted := attempt{http.MethodPatch, "/api/v1/namespaces/" + own.Name, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`, "", ""}
	_, err = unrestricted.result(t, client)
	g.Expect(err).To(MatchError(ContainSubstring(refused + "without a Pod Security Standard")))
}
