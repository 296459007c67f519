package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// The shared clusters of the tests, created on first use.
var (
	shared = &cluster{}
	// hindered is for tests that change the behavior of the whole cluster.
	hindered = &cluster{}
	bare     = &cluster{options: []embedded.Option{embedded.WithoutControllers()}}
)

// cluster is an embedded cluster with an audit log.
type cluster struct {
	options []embedded.Option
	made    sync.Once
	failed  error
	mu      sync.Mutex
	local   *embedded.Cluster
	dir     string
	kubernetes.Interface
	config *rest.Config
	// audited caches the requests of each user in the audit log, because tests read it many times a second.
	audited map[string]*auditedRequests
	reading sync.Mutex
}

// auditedRequests are the requests of a user in the beginning of an audit log.
type auditedRequests struct {
	read     int64
	requests []request
}

// in creates the cluster if necessary. The test is skipped when no Kubernetes was built.
func (c *cluster) in(t *testing.T) *cluster {
	t.Helper()
	clustertest.Uncached()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	c.made.Do(func() { c.failed = c.make() })
	if c.failed != nil {
		t.Fatal(c.failed)
	}
	return c
}

func (c *cluster) make() (err error) {
	if c.dir, err = os.MkdirTemp("", "runner-test-audit-"); err != nil {
		return err
	}
	c.local = embedded.New(built.kubernetes, append(c.options, embedded.WithAuditLog(c.auditLog()))...)
	if err = c.local.Create(context.Background()); err != nil {
		return err
	}
	c.config = c.local.RESTConfig()
	c.config.QPS, c.config.Burst, c.config.WarningHandler = 500, 500, rest.NoWarnings{}
	c.Interface, err = kubernetes.NewForConfig(c.config)
	return err
}

// destroyClusters removes the clusters.
func destroyClusters() error {
	var failures []error
	for _, c := range []*cluster{whole, shared, bare, ending, governed, hindered, failing} {
		if c.local != nil {
			failures = append(failures, c.local.Destroy(), os.RemoveAll(c.dir))
		}
	}
	return errors.Join(failures...)
}

func (c *cluster) auditLog() string { return filepath.Join(c.dir, "audit.log") }

// user returns a kubeconfig for a user. The name must be unique to the test, because it identifies the test's requests.
func (c *cluster) user(t *testing.T, name string, groups ...string) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	kubeconfig, err := c.local.AddUser(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// admin returns a kubeconfig for a user who may do everything.
func (c *cluster) admin(t *testing.T, name string) string {
	t.Helper()
	return c.user(t, name, "system:masters")
}

// request is one line of an audit log.
type request struct {
	Stage      string
	Verb       string
	RequestURI string
	User       struct{ Username string }
	// ImpersonatedUser is the impersonated user, if any.
	ImpersonatedUser *struct {
		Username string
		Groups   []string
	}
	// AuthenticationMetadata is the verb by which constrained impersonation was allowed, if it was.
	AuthenticationMetadata struct{ ImpersonationConstraint string }
	// Annotations contain decisions and their reasons.
	Annotations map[string]string
	ObjectRef   *struct{ Resource, Namespace, Name, APIGroup, Subresource string }
}

func (r request) String() string { return r.Verb + " " + r.RequestURI }

// of reports whether the request was for a resource.
func (r request) of(resource string) bool {
	return r.ObjectRef != nil && r.ObjectRef.Resource == resource
}

// writes reports whether the request may have changed something.
func (r request) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// selector returns the request's label selector.
func (r request) selector() string { return r.query().Get("labelSelector") }

func (r request) query() url.Values {
	address, err := url.Parse(r.RequestURI)
	if err != nil {
		return nil
	}
	return address.Query()
}

// requests returns the requests of a user so far, in order.
func (c *cluster) requests(t *testing.T, user string) []request {
	t.Helper()
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.audited == nil {
		c.audited = map[string]*auditedRequests{}
	}
	if c.audited[user] == nil {
		c.audited[user] = &auditedRequests{}
	}
	known := c.audited[user]
	known.requests = append(known.requests, c.since(t, user, &known.read)...)
	return slices.Clone(known.requests)
}

// follow reads the audit log: each call of the returned function returns the user's requests since the previous one.
func (c *cluster) follow(t *testing.T, user string) func() []request {
	read := int64(0)
	return func() []request { return c.since(t, user, &read) }
}

// since reads the audit log from an offset to its end, and advances the offset.
func (c *cluster) since(t *testing.T, user string, read *int64) (requests []request) {
	t.Helper()
	log, err := os.Open(c.auditLog())
	if err != nil {
		t.Error(err)
		return nil
	}
	defer func() { _ = log.Close() }()
	lines := bufio.NewReader(io.NewSectionReader(log, *read, math.MaxInt64-*read))
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // or an incomplete line
			return requests
		}
		if err != nil {
			t.Error(err)
			return requests
		}
		*read += int64(len(line))
		r := request{}
		if bytes.Contains(line, []byte(user)) && json.Unmarshal(line, &r) == nil && r.User.Username == user {
			requests = append(requests, r)
		}
	}
}

// namespacesMade returns the names of the namespaces that a user has created, in order.
func (c *cluster) namespacesMade(t *testing.T, user string) []string {
	t.Helper()
	var names []string
	for _, r := range c.requests(t, user) {
		if r.Verb == "create" && r.of("namespaces") && r.query().Get("dryRun") == "" {
			names = append(names, r.ObjectRef.Name)
		}
	}
	return names
}

// awaitHeld waits until an object is held in mid-deletion in each of n new namespaces of a user, and returns the id of the run.
func (c *cluster) awaitHeld(t *testing.T, user string, n int) (run string) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		namespaces := c.namespacesMade(t, user)
		g.Expect(namespaces).To(HaveLen(n))
		for _, namespace := range namespaces {
			maps, err := c.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: session.RunLabel})
			g.Expect(err).NotTo(HaveOccurred())
			held := func(object corev1.ConfigMap) bool {
				return object.DeletionTimestamp != nil && slices.Contains(object.Finalizers, framework.Hold)
			}
			g.Expect(slices.ContainsFunc(maps.Items, held)).To(BeTrue(), "something is held in %s", namespace)
			run = maps.Items[0].Labels[session.RunLabel]
		}
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	return run
}

// objects returns every object on the cluster by name, except those that the control plane updates all the time.
func (c *cluster) objects(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	discovering, err := discovery.NewDiscoveryClientForConfig(c.config)
	g.Expect(err).NotTo(HaveOccurred())
	listing, err := dynamic.NewForConfig(c.config)
	g.Expect(err).NotTo(HaveOccurred())
	lists, err := discovering.ServerPreferredResources()
	g.Expect(err).NotTo(HaveOccurred())
	listed := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	resources, err := discovery.GroupVersionResources(listed)
	g.Expect(err).NotTo(HaveOccurred())
	restless := []string{"leases", "events", "endpointslices"}
	everything := map[string]*unstructured.Unstructured{}
	for resource := range resources {
		if slices.Contains(restless, resource.Resource) {
			continue
		}
		objects, err := listing.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // the kind of another run's spec, which was deleted meanwhile
		}
		g.Expect(err).NotTo(HaveOccurred(), resource.String())
		for _, object := range objects.Items {
			name := fmt.Sprintf("%s %s/%s (uid %s)", resource.GroupResource(), object.GetNamespace(), object.GetName(), object.GetUID())
			everything[name] = &object
		}
	}
	return everything
}

// settled returns everything on the cluster after its control plane has finished: something in every namespace, and no change for a second.
func (c *cluster) settled(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	var before map[string]*unstructured.Unstructured
	NewWithT(t).Eventually(func(g Gomega) {
		for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			_, err := c.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = c.CoreV1().ConfigMaps(namespace).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		}
		now := c.objects(t) // after these objects were there, so that it contains them
		difference := differences(before, now)
		before = now
		g.Expect(difference).To(BeEmpty())
	}).WithTimeout(waitTimeout).WithPolling(time.Second).Should(Succeed(), "a new cluster comes to rest")
	return before
}

// differences returns the objects that only one side has.
func differences(before, after map[string]*unstructured.Unstructured) []string {
	var differences []string
	for name := range before {
		if after[name] == nil {
			differences = append(differences, "gone: "+name)
		}
	}
	for name := range after {
		if before[name] == nil {
			differences = append(differences, "new: "+name)
		}
	}
	slices.Sort(differences)
	return differences
}

// mentioning returns the objects on the cluster that contain the id of a run anywhere: in a name, a label, a field.
func (c *cluster) mentioning(t *testing.T, run string) []string {
	t.Helper()
	var names []string
	for name, object := range c.objects(t) {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), run) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// grant gives a user cluster-wide permissions.
func (c *cluster) grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	c.role(t, user, rules...)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// role creates a ClusterRole.
func (c *cluster) role(t *testing.T, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := c.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
