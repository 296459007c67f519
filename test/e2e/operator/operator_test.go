// Package operator tests which mistakes the behaviors of a controller detect: the runner tests the kind of a real operator, which works
// correctly or makes a typical mistake.
package operator

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

const (
	// bin is the output directory of `make build`.
	bin = "../../../bin"
	// waitTimeout is the timeout for expected events, and polling the interval for checking.
	waitTimeout, polling = 2 * time.Minute, 20 * time.Millisecond
	// deployment is the Deployment of an operator, in its own namespace.
	deployment = "gadgets"
)

// laboratory is a cluster with operators.
type laboratory struct {
	kubernetes.Interface
	config     *rest.Config
	kubeconfig string
}

// operator is a deployed operator.
type operator struct {
	laboratory
	// name is the name of its namespace, and the first part of the API group of its Gadgets.
	name string
}

// open creates the cluster, with a node for operators.
func open(t *testing.T) laboratory {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gadgets")
	if said, err := exec.Command("go", "build", "-o", program, "./gadgets").CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, said)
	}
	cluster := clustertest.Cluster(t, bin)
	config := cluster.RESTConfig()
	config.QPS, config.Burst = 500, 500 // some states exist for only seconds
	l := laboratory{kubernetes.NewForConfigOrDie(config), config, cluster.Kubeconfig()}
	startKubelet(t, l, program, l.kubeconfig)
	return l
}

// deploy deploys an operator with a mistake, or without.
func (l laboratory) deploy(t *testing.T, name, mistake string) operator {
	t.Helper()
	g, o := NewWithT(t), operator{l, name}
	o.define(t)
	_, err := l.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	labels := map[string]string{"app": deployment}
	_, err = l.AppsV1().Deployments(name).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: deployment},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
					Name: deployment, Image: deployment, Args: []string{"-group", o.group(), "-mistake", mistake},
				}}},
			},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() int32 { return o.deployed(t).Status.AvailableReplicas }).WithTimeout(waitTimeout).WithPolling(polling).Should(BeEquivalentTo(1))
	return o
}

// define defines the operator's kind.
func (o operator) define(t *testing.T) {
	t.Helper()
	g, definitions := NewWithT(t), apiextensions.NewForConfigOrDie(o.config).ApiextensionsV1().CustomResourceDefinitions()
	_, err := definitions.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: o.resource()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: o.group(), Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Kind: "Gadget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() ([]apiextensionsv1.CustomResourceDefinitionCondition, error) {
		defined, err := definitions.Get(t.Context(), o.resource(), metav1.GetOptions{})
		return defined.Status.Conditions, err
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(ContainElement(And(
		HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue))))
}

func (o operator) group() string    { return o.name + ".example.com" }
func (o operator) resource() string { return "gadgets." + o.group() }

// deployed returns the operator's current Deployment.
func (o operator) deployed(t *testing.T) *appsv1.Deployment {
	t.Helper()
	found, err := o.AppsV1().Deployments(o.name).Get(t.Context(), deployment, metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found
}

// run is a runner that tests an operator.
type run struct {
	*exec.Cmd
	folder string
}

// run returns a runner that tests the operator.
func (o operator) run(t *testing.T, arguments ...string) run {
	t.Helper()
	return o.runner(t, append([]string{
		"--procs", "2", // each creates a namespace
		"--cleanup-timeout", "30s", // exceeded when a mistake keeps an operator from removing its finalizer
	}, arguments...)...)
}

// runner returns a command of the runner about the operator.
func (o operator) runner(t *testing.T, arguments ...string) run {
	t.Helper()
	folder := t.TempDir()
	fixture := filepath.Join(folder, "gadget.yaml")
	manifest := fmt.Sprintf("apiVersion: %s/v1\nkind: Gadget\n", o.group())
	NewWithT(t).Expect(os.WriteFile(fixture, []byte(manifest), 0o600)).To(Succeed())
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "runner"), append(arguments,
		"--kubeconfig", o.kubeconfig, "--resource", o.resource(), "--fixture", fixture,
		"--controller", "deploy/"+deployment, "--controller-namespace", o.name, "--disruptive", "--report-dir", folder,
	)...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder}
	return run{command, folder}
}

// outcomes returns the outcomes of the operator suite's selected behaviors, by id.
func (r run) outcomes(t *testing.T) map[string]v1alpha1.Outcome {
	t.Helper()
	said, err := r.CombinedOutput()
	t.Logf("%s", said)
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	whole, err := report.Read(filepath.Join(r.folder, "report.json"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	outcomes := map[string]v1alpha1.Outcome{}
	for _, result := range whole.Clusters[0].Results {
		if result.Outcome != v1alpha1.Filtered {
			outcomes[result.ID] = result.Outcome
		}
	}
	return outcomes
}

// atOnce is the number of operators that are tested in parallel without -parallel, because they mostly wait.
const atOnce = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestOperators(t *testing.T) {
	l := open(t)
	t.Run("one that does its part passes", l.passes)
	t.Run("the definition is deleted on a cluster of the run", l.deletesDefinition)
	t.Run("one that keeps its definition is noticed", l.noticesKeptDefinition)
	t.Run("a definition with objects of others stays", l.sparesOthers)
	t.Run("one that never removes its finalizer costs one timeout", l.costsOneTimeout)
	made := mistakes
	if testing.Short() {
		made = made[:fewMistakes]
	}
	for _, mistake := range made {
		t.Run(mistake.name, func(t *testing.T) { l.notices(t, mistake) })
	}
}

func TestOperators_Restored(t *testing.T) {
	clustertest.Long(t)
	l := open(t)
	t.Run("one that was stopped is started when the run is interrupted", l.restartedAfterInterruption)
	t.Run("one that was stopped is started by cleanup when the run was killed", l.restartedByCleanup)
	t.Run("one that somebody has scaled since is left alone", l.leftAsOthersScaledIt)
	t.Run("one that an exploration restarts is found as it was", l.restartedByExploration)
}

// passes: all behaviors pass for an operator without mistakes.
func (l laboratory) passes(t *testing.T) {
	t.Parallel()
	outcomes := l.deploy(t, "sound", "").run(t, "--suite", "operator").outcomes(t)
	g := NewWithT(t)
	g.Expect(len(outcomes)).To(BeNumerically(">=", 5))
	g.Expect(outcomes).To(HaveKeyWithValue(definitionDeletion, v1alpha1.Skipped), "nobody says that the cluster was created for the run")
	delete(outcomes, definitionDeletion)
	for id, outcome := range outcomes {
		g.Expect(outcome).To(Equal(v1alpha1.Passed), id)
	}
}

// costsOneTimeout: only the first wait for an operator that never removes its finalizer has the full timeout.
func (l laboratory) costsOneTimeout(t *testing.T) {
	t.Parallel()
	r := l.deploy(t, "stuck", "never-releases").run(t, "--label-filter", "operator.children-removed", "--wait-timeout", failsAfter.String(), "--cleanup-timeout", failsAfter.String())

	outcomes := r.outcomes(t)

	g := NewWithT(t)
	g.Expect(outcomes).To(Equal(map[string]v1alpha1.Outcome{"operator.children-removed": v1alpha1.Failed}))
	whole, err := report.Read(filepath.Join(r.folder, "report.json"))
	g.Expect(err).NotTo(HaveOccurred())
	cluster := whole.Clusters[0]
	g.Expect(cluster.Warning).To(And(HavePrefix("waits are shortened "), ContainSubstring(`"gadgets.example.com/secret"`), MatchRegexp(`did not remove within \d+(\.\d+)?s$`)))
	for _, result := range cluster.Results {
		if result.ID == "operator.children-removed" {
			g.Expect(result.Failure.Message).To(ContainSubstring("The wait was shortened: "))
		}
	}
	g.Expect(cluster.LeftBehind).To(ContainSubstring("waits for finalizer gadgets.example.com/secret"))
}

// failsAfter is the timeout of behaviors: twice what they need without a mistake.
const failsAfter = 15 * time.Second

// mistake is a mistake of an operator, with the behavior that must detect it.
type mistake struct{ name, noticed string }

// fewMistakes is the number of mistakes with -short.
const fewMistakes = 2

var mistakes = []mistake{
	{"finalizer-late", "operator.finalizer-before-children"},
	{"no-owner-reference", "operator.children-removed"},
	{"wrong-owner", "operator.children-removed"},
	{"leaves-secret", "operator.children-removed"},
	{"misses-deletes", "operator.controller-stopped"},
	{"releases-at-end", "operator.controller-stopped"},
	{"recreates", "operator.repeated-deletes"},
	{"writes-record", "operator.namespace-deletion"},
}

// notices: a mistake fails only the behavior about it. With -short the others are not tested.
func (l laboratory) notices(t *testing.T, mistake mistake) {
	t.Parallel()
	arguments := []string{"--suite", "operator", "--wait-timeout", failsAfter.String(), "--label-filter", "!" + definitionDeletion}
	if testing.Short() {
		arguments[len(arguments)-1] = mistake.noticed
	}
	outcomes := l.deploy(t, mistake.name, mistake.name).run(t, arguments...).outcomes(t)
	var failed []string
	for id, outcome := range outcomes {
		if outcome != v1alpha1.Passed {
			failed = append(failed, id+" "+string(outcome))
		}
	}
	NewWithT(t).Expect(failed).To(ConsistOf(mistake.noticed + " " + string(v1alpha1.Failed)))
}
