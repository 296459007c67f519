package e2e

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/conformance"
)

// configOf returns the configuration of a kubeconfig's cluster.
func configOf(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// These tests are a program that imports the suites: they run in parallel with others, in the processes of that program.

func TestConformance_Resources(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	var said bytes.Buffer
	reports := t.TempDir()

	whole, err := conformance.Run(t.Context(), configOf(t, c.admin(t, "program")), conformance.Options{
		Name: "mine", Resources: []string{"leases", "secrets"}, LabelFilter: "finalizers.held || finalizers.dry-run",
		Unsupported: map[v1alpha1.Feature]string{v1alpha1.Hook: "nobody asked for it"},
		Processes:   2, ReportDir: reports, Output: &said,
	})

	g.Expect(err).NotTo(HaveOccurred())
	columns := columnsOf(whole)
	g.Expect(columns).To(HaveLen(2))
	for resource, column := range columns {
		g.Expect(column.Name).To(Equal("mine " + resource))
		g.Expect(reasons(column, v1alpha1.Passed)).To(And(HaveLen(2), HaveKey("finalizers.held"), HaveKey("finalizers.dry-run")))
		g.Expect(column.Features).To(ContainElement(v1alpha1.FeatureStatus{Feature: v1alpha1.Hook, Reason: "nobody asked for it"}))
	}
	g.Expect(said.String()).To(And(ContainSubstring("mine leases"), ContainSubstring("finalizers.held")))
	g.Expect(os.ReadFile(filepath.Join(reports, "junit.xml"))).To(ContainSubstring("mine secrets"))
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
}

func TestConformance_Failures(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	ignoring := func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodDelete && strings.Contains(request.URL.Path, "/leases/") {
				request.URL.RawQuery = ""
				replaceBody(t, request, `"dryRun":["All"]`, `"dryRun":[]`)
			}
			next.ServeHTTP(writer, request)
		}
	}

	whole, err := conformance.Run(t.Context(), configOf(t, c.throughProxy(t, ignoring)), conformance.Options{
		Resources: []string{"leases"}, LabelFilter: "finalizers.held || finalizers.dry-run", Processes: 1,
	})

	g.Expect(err).To(MatchError(conformance.ErrNonconformant))
	g.Expect(err).To(MatchError(And(ContainSubstring("1 behavior failed"), ContainSubstring("failed finalizers.dry-run: "))))
	g.Expect(resultOf(whole.Clusters[0], "finalizers.held").Outcome).To(Equal(v1alpha1.Passed))
	g.Expect(resultOf(whole.Clusters[0], "finalizers.dry-run").Failure).NotTo(BeNil())
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())

	whole, err = conformance.Run(t.Context(), configOf(t, c.throughProxy(t, ignoring)), conformance.Options{
		Resources: []string{"leases"}, LabelFilter: "finalizers.held || finalizers.dry-run", Processes: 1,
		KnownFailures: []conformance.KnownFailure{
			{ID: "finalizers.dry-run", Resource: "leases", Reason: "dry-runs are ignored"}, {ID: "finalizers.held", Reason: "it was held"},
		},
	})

	g.Expect(err).To(MatchError(conformance.ErrKnownFailuresOutdated))
	g.Expect(reasons(whole.Clusters[0], v1alpha1.Known)).To(HaveKeyWithValue("finalizers.dry-run", "known failure: dry-runs are ignored"))
	g.Expect(reasons(whole.Clusters[0], v1alpha1.Outdated)).To(HaveKeyWithValue("finalizers.held", ContainSubstring("remove the entry")))
}

func TestConformance_KeepFailed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const held = "finalizers.held"

	whole, err := conformance.Run(t.Context(), configOf(t, c.refusingOnce(t)), conformance.Options{LabelFilter: held, Processes: 1, KeepFailed: true})

	g.Expect(err).To(MatchError(conformance.ErrNonconformant))
	kept := whole.Clusters[0].Kept
	g.Expect(kept).To(And(ContainSubstring(held+":\n  ConfigMap "), ContainSubstring("runner cleanup --run "+whole.RunID)))
	g.Expect(start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", c.admin(t, "program"), "--run", whole.RunID).wait().code).To(BeZero())
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
}

func TestConformance_Canceled(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	ctx, cancel := context.WithCancel(t.Context())

	whole, err := conformance.Run(ctx, configOf(t, c.admin(t, "hasty-program")), conformance.Options{
		Resources: []string{"leases"}, Suites: []string{"finalizers"}, Processes: 1, Output: endingAt("finalizers.", cancel),
	})

	g.Expect(err).To(MatchError(conformance.ErrInconclusive))
	g.Expect(err).To(MatchError(ContainSubstring("the run was interrupted before")))
	g.Expect(whole.Interrupted).To(BeTrue())
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
}

func TestConformance_ControllerEnded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)

	whole, err := conformance.Run(t.Context(), configOf(t, c.admin(t, "broken-program")), conformance.Options{
		Resources: []string{"leases"}, Suites: []string{"operator"}, Processes: 1,
		RunController: func(context.Context) error { return errors.New("no kind is registered") },
	})

	g.Expect(err).To(MatchError(conformance.ErrInconclusive))
	g.Expect(err).To(MatchError(ContainSubstring("RunController returned before the run ended (start 1): no kind is registered")))
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
}

// endingAt is an output that calls a function when it receives a text.
func endingAt(text string, does func()) watched { return watched{text, does} }

type watched struct {
	text string
	does func()
}

func (w watched) Write(content []byte) (int, error) {
	if strings.Contains(string(content), w.text) {
		w.does()
	}
	return len(content), nil
}

func TestConformance_InvalidOptions(t *testing.T) {
	t.Parallel()
	fixtures, err := conformance.ReadFixtures(write(t, "apiVersion: v1\nkind: ConfigMap\n"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	nowhere := &rest.Config{Host: "https://127.0.0.1:1"}
	for _, test := range []struct {
		name    string
		config  *rest.Config
		options conformance.Options
		says    string
	}{
		{"a suite that is not there", nowhere, conformance.Options{Suites: []string{"absent"}}, `unknown suite "absent"`},
		{"nothing", nowhere, conformance.Options{LabelFilter: "absent"}, "no behavior has the label"},
		{"to wait for less than no time", nowhere, conformance.Options{WaitTimeout: -1}, "WaitTimeout must be greater than zero"},
		{"a fixture of nothing", nowhere, conformance.Options{Fixtures: fixtures}, "Fixtures requires Resources or AllResources"},
		{"known failures without a reason", nowhere, conformance.Options{KnownFailures: []conformance.KnownFailure{{ID: "finalizers.held"}}}, "KnownFailures: entry 1 (finalizers.held): reason is missing"},
		{"a controller of nothing", nowhere, conformance.Options{Controller: "deploy/x", ControllerNamespace: "y"}, "Controller requires exactly one Resources"},
		{"a controller of two", nowhere, conformance.Options{Resources: []string{"a", "b"}, Controller: "deploy/x", ControllerNamespace: "y"}, "Controller requires exactly one Resources"},
		{"a controller, and nothing made", nowhere,
			conformance.Options{Resources: []string{"a"}, Controller: "deploy/x", ControllerNamespace: "y", NoCreate: true}, "Controller and NoCreate are mutually exclusive"},
		{"a controller in no namespace", nowhere, conformance.Options{Resources: []string{"a"}, Controller: "deploy/x"}, "requires ControllerNamespace"},
		{"two controllers", nowhere,
			conformance.Options{Resources: []string{"a"}, Controller: "deploy/x", ControllerNamespace: "y", RunController: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}}, "Controller and RunController are mutually exclusive"},
		{"a way there of its own", &rest.Config{Host: "example.com", Transport: http.DefaultTransport}, conformance.Options{}, "worker processes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			whole, err := conformance.Run(t.Context(), test.config, test.options)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(err).NotTo(Or(MatchError(conformance.ErrNonconformant), MatchError(conformance.ErrInconclusive)))
			g.Expect(whole).To(BeZero())
		})
	}
	t.Run("what is not there", func(t *testing.T) {
		g := NewWithT(t)
		whole, err := conformance.Run(t.Context(), nowhere, conformance.Options{Name: "nowhere", Processes: 1})
		g.Expect(err).To(MatchError(conformance.ErrInconclusive))
		g.Expect(whole.Clusters[0].Name).To(Equal("nowhere"))
		g.Expect(whole.Clusters[0].Problem).To(ContainSubstring("cluster unreachable"))
	})
}

func TestConformance_Explore(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	config := configOf(t, c.admin(t, "explorer-program"))
	var progress bytes.Buffer

	whole, err := conformance.Explore(t.Context(), config, conformance.ExploreOptions{
		Options: conformance.Options{Name: "mine", Resources: []string{"leases"}, Output: &progress}, For: 2 * time.Second, Clients: 2, Seed: 7,
	})

	g.Expect(err).NotTo(HaveOccurred())
	column := columnsOf(whole)["leases"]
	g.Expect(reasons(column, v1alpha1.Failed)).To(BeEmpty())
	g.Expect(reasons(column, v1alpha1.Passed)).To(HaveKey("explore.object.one-order"))
	g.Expect(progress.String()).To(ContainSubstring("rounds"))
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())

	_, err = conformance.Explore(t.Context(), config, conformance.ExploreOptions{Scenario: "chaos"})
	g.Expect(err).To(MatchError(ContainSubstring(`unknown scenario "chaos"; choose from`)))
}
