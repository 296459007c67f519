package injection

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

const run, collector, self = "dcbcdfghjk", "system:serviceaccount:kube-system:generic-garbage-collector", "admin"

// reviewOf is a review of a write to ConfigMap r1-a of the run.
func reviewOf(user string, operation admissionv1.Operation) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "r1-a", Namespace: run + "-1", Operation: operation, UserInfo: authenticationv1.UserInfo{Username: user},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	}}
}

// injectorOf injects all faults, without a cluster.
func injectorOf() *Injector {
	i := &Injector{cluster: Cluster{Settings: session.Config{Run: run}}, faults: All}
	i.self = self
	return i
}

func armed(i *Injector, names ...string) {
	for _, name := range names {
		for _, fault := range All {
			if fault.Name == name {
				i.arm(fault)
			}
		}
	}
}

func refused() OmegaMatcher {
	return And(HaveField("Allowed", false), HaveField("Result.Code", BeEquivalentTo(http.StatusForbidden)))
}

func TestReview_RefusesOneWrite(t *testing.T) {
	g, i := NewWithT(t), injectorOf()
	armed(i, "refuse")

	g.Expect(i.review(t.Context(), reviewOf(self, "DELETE"))).To(HaveField("Allowed", true))
	g.Expect(i.review(t.Context(), reviewOf(collector, "DELETE"))).To(refused())
	g.Expect(i.review(t.Context(), reviewOf(collector, "DELETE"))).To(HaveField("Allowed", true), "the next one")

	faults, _ := i.EndRound()
	g.Expect(faults).To(ConsistOf(And(HaveField("Name", "refuse"), HaveField("Effect", "refused DELETE of configmaps r1-a by "+collector))))
}

func TestReview_RefusesEachKindTwice(t *testing.T) {
	g, i := NewWithT(t), injectorOf()
	g.Expect(i.Inject(t.Context(), nil, generate.Intent{Fault: Refuse, Step: EachKind})).To(Succeed())
	status := reviewOf(collector, "UPDATE")
	status.SubResource = "status"
	pods := reviewOf(collector, "UPDATE")
	pods.Resource.Resource = "pods"

	for _, request := range []admission.Request{
		reviewOf(collector, "DELETE"), reviewOf(collector, "UPDATE"), reviewOf("system:serviceaccount:kube-system:job-controller", "UPDATE"), status, pods,
	} {
		g.Expect(i.review(t.Context(), request)).To(refused())
		g.Expect(i.review(t.Context(), request)).To(refused())
		g.Expect(i.review(t.Context(), request)).To(HaveField("Allowed", true), "the third one of its kind")
	}

	faults, _ := i.EndRound()
	g.Expect(faults).To(HaveLen(10))
	g.Expect(i.review(t.Context(), reviewOf(collector, "CREATE"))).To(HaveField("Allowed", true), "the round has ended")
}

func TestReview_Concerns(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*admission.Request)
		concerns bool
	}{
		"a controller":                  {func(*admission.Request) {}, true},
		"the controller manager":        {func(r *admission.Request) { r.UserInfo.Username = controllerManager }, true},
		"an operator":                   {func(r *admission.Request) { r.UserInfo.Username = "system:serviceaccount:widgets:operator" }, true},
		"the run":                       {func(r *admission.Request) { r.UserInfo.Username = self }, false},
		"a kubelet":                     {func(r *admission.Request) { r.UserInfo.Username = "system:node:a" }, false},
		"a person":                      {func(r *admission.Request) { r.UserInfo.Username = "jane" }, false},
		"a dry-run":                     {func(r *admission.Request) { r.DryRun = new(true) }, false},
		"an object of others":           {func(r *admission.Request) { r.Namespace = "default" }, false},
		"a namespace with copied label": {func(r *admission.Request) { r.Namespace = run + "x-1" }, false},
		"a cluster-scoped object":       {func(r *admission.Request) { r.Namespace, r.Name = "", run+"-r1-owner" }, true},
		"an object of a deletecollection": {func(r *admission.Request) {
			r.Namespace, r.Name, r.OldObject.Raw = "", "", []byte(`{"metadata": {"name": "`+run+`-r1-owner"}}`)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, i := NewWithT(t), injectorOf()
			armed(i, "refuse")
			request := reviewOf(collector, "DELETE")
			test.change(&request)
			g.Expect(i.review(t.Context(), request).Allowed).To(Equal(!test.concerns))
		})
	}
}

func TestReview_RunInPod(t *testing.T) {
	g, i := NewWithT(t), injectorOf()
	i.self = "system:serviceaccount:ci:runner"
	armed(i, "refuse")
	g.Expect(i.review(t.Context(), reviewOf(i.self, "DELETE")).Allowed).To(BeTrue())
	g.Expect(i.called.Load()).To(BeTrue())
}

func TestReview_DelayEndsWithRequest(t *testing.T) {
	g, i := NewWithT(t), injectorOf()
	armed(i, "delay", "refuse")
	ctx, cancel := context.WithCancel(t.Context())
	delayedReview := make(chan admission.Response)
	go func() { delayedReview <- i.review(ctx, reviewOf(collector, "UPDATE")) }()
	g.Eventually(func() int { i.mu.Lock(); defer i.mu.Unlock(); return len(i.effect) }).Should(Equal(1))

	g.Expect(i.review(t.Context(), reviewOf(collector, "UPDATE"))).To(refused(), "others go on")
	g.Consistently(delayedReview).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
	cancel()
	g.Eventually(delayedReview).Should(Receive(HaveField("Allowed", true)))
}

func TestReview_EndRound(t *testing.T) {
	g, i := NewWithT(t), injectorOf()
	armed(i, "refuse", "delay")
	faults, requests := i.EndRound()
	g.Expect(faults).To(BeEmpty(), "no write came")
	g.Expect(requests).To(BeEmpty())
	g.Expect(i.review(t.Context(), reviewOf(collector, "DELETE")).Allowed).To(BeTrue())
}

// server responds to patches with a status code, and records their bodies.
type server struct {
	mu     sync.Mutex
	code   int
	bodies []string
}

func (s *server) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(request.Body)
	s.bodies = append(s.bodies, request.Method+" "+request.URL.Path+" "+string(body))
	writer.WriteHeader(s.code)
	_ = json.NewEncoder(writer).Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "r1-a", "resourceVersion": "7"}})
}

func TestReview_Conflict(t *testing.T) {
	for name, test := range map[string]struct {
		code    int
		request admission.Request
		faults  int
		sent    int
	}{
		"update":                   {http.StatusOK, reviewOf(collector, "UPDATE"), 1, 1},
		"delete":                   {http.StatusOK, reviewOf(collector, "DELETE"), 1, 1},
		"create":                   {http.StatusOK, reviewOf(collector, "CREATE"), 0, 0},
		"the writer finds nothing": {http.StatusNotFound, reviewOf(collector, "DELETE"), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, i, responder := NewWithT(t), injectorOf(), &server{code: test.code}
			config, _ := apiservertest.Start(t, responder.ServeHTTP)
			connected, err := client.New(config, client.NewGuard(run))
			g.Expect(err).NotTo(HaveOccurred())
			i.cluster.Client = connected
			round := &clients.Round{Names: []string{"r1-a"}, Began: time.Now(), Manifest: fixtures.ConfigMap("explored")}
			i.StartRound(clients.New(round, connected, 9))
			armed(i, "conflict")

			g.Expect(i.review(t.Context(), test.request).Allowed).To(BeTrue(), "the server finds the conflict")

			faults, requests := i.EndRound()
			g.Expect(faults).To(HaveLen(test.faults))
			g.Expect(requests).To(HaveLen(test.sent), "it is one of the round's requests")
			g.Expect(responder.bodies).To(HaveLen(test.sent))
			for _, body := range responder.bodies {
				g.Expect(body).To(And(HavePrefix("PATCH /api/v1/namespaces/"+run+"-1/configmaps/r1-a "), ContainSubstring("conflict.1")))
			}
			for _, request := range requests {
				g.Expect(request).To(And(HaveField("Client", 9), HaveField("Name", "r1-a"), HaveField("Operation.Change.Value", HaveValue(Equal("conflict.1")))))
			}
		})
	}
}

func TestConfiguration_OnlyTheRun(t *testing.T) {
	g := NewWithT(t)
	object, err := configurationOf(session.Config{Run: run}, registrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")}, `a"b`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.NamedBy(run, object.GetName())).To(BeTrue(), "cleanup finds it by its name")
	g.Expect(object.GetLabels()).To(HaveKeyWithValue(client.RunLabel, run))
	content, err := json.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	var configuration registrationv1.ValidatingWebhookConfiguration
	g.Expect(json.Unmarshal(content, &configuration)).To(Succeed())
	g.Expect(configuration.Webhooks).To(HaveLen(1))
	webhook := configuration.Webhooks[0]
	g.Expect(webhook.NamespaceSelector.MatchLabels).To(Equal(map[string]string{client.RunLabel: run}))
	g.Expect(webhook.ObjectSelector.MatchLabels).To(Equal(map[string]string{client.RunLabel: run}))
	g.Expect(webhook.FailurePolicy).To(HaveValue(Equal(registrationv1.Ignore)))
	g.Expect(webhook.TimeoutSeconds).To(HaveValue(BeNumerically("<=", 5)))
	g.Expect(time.Duration(*webhook.TimeoutSeconds) * time.Second).To(BeNumerically(">", delayed))
	g.Expect(strings.HasPrefix(webhook.MatchConditions[0].Expression, `request.userInfo.username != "a\"b" ||`)).To(BeTrue())
}
