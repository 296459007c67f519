package e2e

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestExplore_InjectedFaults(t *testing.T) {
	t.Parallel()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	g := NewWithT(t)
	_, environment := embedding(t)

	ran := startRunIn(t, environment, "explore", "--provider", "embedded", "--nodes", "0", "--scenario", "ownership", "--inject", "all",
		"--for", "30s", "--seed", "7").wait()

	ran.foundNothing(t)
	g.Expect(reasons(ran.explored(t), v1alpha1.Failed)).To(BeEmpty())
	g.Expect(reasons(ran.explored(t), v1alpha1.Passed)).To(HaveKey("explore.ownership.collected"))
	for _, fault := range []string{"refuse", "delay", "conflict", "watch-end"} {
		g.Expect(ran.out).To(MatchRegexp(`injected %s [1-9]\d* times`, fault))
	}
}

// impatient is a controller that annotates ConfigMaps with a label, and deletes those that it may not write, as if they were of no use.
type impatient struct{ client.Client }

// impatientLabel is the label of its ConfigMaps.
const impatientLabel = "impatient"

// Reconcile writes one ConfigMap.
func (i impatient) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &corev1.ConfigMap{}
	if err := i.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.Labels[impatientLabel] == "" || object.Annotations[impatientLabel] != "" {
		return ctrl.Result{}, nil
	}
	err := i.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"impatient": "no"}}}`)))
	if apierrors.IsForbidden(err) {
		err = i.Delete(ctx, object)
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// runImpatient runs the controller with a service account until the test ends.
func (c *cluster) runImpatient(t *testing.T) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	user := rest.CopyConfig(c.config)
	user.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:impatient", Groups: []string{"system:masters"}}
	manager, err := ctrl.NewManager(user, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(), Controller: config.Controller{SkipNameValidation: new(true)},
	})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ctrl.NewControllerManagedBy(manager).Named("impatient").For(&corev1.ConfigMap{}).Complete(impatient{manager.GetClient()})).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	})
}

func TestExplore_InjectedRefusal(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	c.runImpatient(t)
	kubeconfig := c.admin(t, "explorer-refusal")
	explore := func(arguments ...string) outcome {
		arguments = append([]string{
			"explore", "--kubeconfig", kubeconfig, "--scenario", "ownership", "--label", impatientLabel + "=yes", "--seed", "7", "--reduce-for", "0",
		}, arguments...)
		return startRunIn(t, emptyEnvironment(t), arguments...).wait()
	}

	g.Expect(reasons(explore("--for", "15s").explored(t), v1alpha1.Failed)).To(BeEmpty())

	refused := explore("--for", "2m", "--inject", "refuse")
	g.Expect(refused.code).To(Equal(1), refused.out)
	g.Expect(reasons(refused.explored(t), v1alpha1.Failed)).To(HaveKey("explore.ownership.kept"))
	g.Expect(resultOf(refused.explored(t), "explore.ownership.kept").Failure.Message).To(ContainSubstring("injected faults that may matter: refuse (refused "))
	g.Expect(c.mentioning(t, refused.report(t).RunID)).To(BeEmpty(), "the webhook is gone")
}

func TestExplore_KilledWithWebhook(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	kubeconfig := c.admin(t, "explorer-killed")
	ran := startRunIn(t, emptyEnvironment(t), "explore", "--kubeconfig", kubeconfig, "--inject", "refuse", "--label", "killed=soon", "--for", "2m")
	// webhooks are those of the run, with its id.
	webhooks := func() (names []string) {
		listed, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{LabelSelector: "killed=soon"})
		g.Expect(err).NotTo(HaveOccurred())
		for _, one := range listed.Items {
			names = append(names, one.Name)
		}
		return names
	}
	g.Eventually(webhooks).WithTimeout(waitTimeout).WithPolling(polling).Should(ConsistOf(HaveSuffix("-faults")))
	run := strings.TrimSuffix(webhooks()[0], "-faults")
	ran.signal(syscall.SIGKILL)
	ran.wait()
	g.Expect(webhooks()).To(HaveLen(1))

	listed := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", run, "--dry-run").wait()
	g.Expect(listed.out).To(ContainSubstring(run + "-faults"))
	cleaned := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", run).wait()

	g.Expect(cleaned.code).To(Equal(0), cleaned.out)
	g.Expect(webhooks()).To(BeEmpty())
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
}

func TestExplore_RestartOfOthersCluster(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)

	ran := startRunIn(t, emptyEnvironment(t), "explore", "--kubeconfig", c.local.Kubeconfig(), "--inject", "restart", "--for", "5s").wait()

	g.Expect(reasons(ran.explored(t), v1alpha1.Passed)).To(BeEmpty())
	g.Expect(reasons(ran.explored(t), v1alpha1.Skipped)).To(HaveKeyWithValue("explore.object.one-order",
		ContainSubstring("the fault restart cannot be injected: the cluster was not created for this run")))
	g.Expect(ran.out).NotTo(ContainSubstring("injected restart"))
}
