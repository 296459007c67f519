package plan_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

// chosen returns the ids of selected behaviors.
func chosen(t *testing.T, selection plan.Selection) []string {
	t.Helper()
	made, err := plan.Make(selection)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, behavior := range made.Chosen() {
		ids = append(ids, behavior.ID)
	}
	return ids
}

// catalog returns every behavior that is linked into this test.
func catalog(t *testing.T) []plan.Behavior {
	t.Helper()
	made, err := plan.Make(plan.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Catalog
}

// idsWhere returns the ids of matching behaviors, sorted.
func idsWhere(behaviors []plan.Behavior, wanted func(plan.Behavior) bool) []string {
	var ids []string
	for _, behavior := range behaviors {
		if wanted(behavior) {
			ids = append(ids, behavior.ID)
		}
	}
	return ids
}

func TestCatalog(t *testing.T) {
	statements, ids := map[string]string{}, map[string]bool{}
	for _, behavior := range catalog(t) {
		t.Run(behavior.ID, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(ids).NotTo(HaveKey(behavior.ID), "an id names one behavior")
			g.Expect(statements).NotTo(HaveKey(behavior.Statement), "a statement is about one behavior")
			ids[behavior.ID], statements[behavior.Statement] = true, behavior.ID
			g.Expect(behavior.Statement).NotTo(BeEmpty())
			g.Expect(v1alpha1.Levels).To(ContainElement(behavior.Level))
			for _, feature := range behavior.Features {
				g.Expect(v1alpha1.Features).To(ContainElement(feature))
			}
			g.Expect(behavior.File).To(HavePrefix("suites/"+behavior.Suite()+"/"), "a suite is a folder")
			if behavior.Since != "" {
				since, err := version.ParseGeneric(behavior.Since)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(since.Components()).To(HaveLen(2), "a minor version, not a patch")
			}
		})
	}
}

// promiseWords limits the words of a quoted promise, without "...".
const promiseWords = 25

// unwritten matches sources without promises: Go code, tests of it, and issues.
var unwritten = regexp.MustCompile(`(^|/)pkg/|\.go($|:)|\bTest[A-Z]|^kubernetes#`)

// required are the core behaviors that no document promises, by decision of this project.
var required = []string{
	"graceful.immediate-failed", "graceful.immediate-gated", "graceful.immediate-succeeded", "graceful.immediate-unscheduled",
}

func TestCatalog_CorePromises(t *testing.T) {
	for _, behavior := range catalog(t) {
		t.Run(behavior.ID, func(t *testing.T) {
			g := NewWithT(t)
			words := strings.Fields(strings.ReplaceAll(behavior.Promise, "...", " "))
			g.Expect(len(words)).To(BeNumerically("<=", promiseWords), "the promise is a short quote")
			if behavior.Level == v1alpha1.Core && !slices.Contains(required, behavior.ID) {
				g.Expect(words).NotTo(BeEmpty(), "a core behavior quotes the sentence that promises it")
				g.Expect(behavior.Source).NotTo(MatchRegexp(unwritten.String()), "a core behavior is promised in writing")
			}
			if behavior.Promise != "" {
				g.Expect(behavior.SourceURL()).NotTo(BeEmpty(), "the quote of %q stands on a page", behavior.Source)
			}
		})
	}
}

func TestMake_NoSelection(t *testing.T) {
	g := NewWithT(t)
	all := catalog(t)
	g.Expect(chosen(t, plan.Selection{})).To(Equal(idsWhere(all, func(b plan.Behavior) bool { return !b.Slow })))
	whole := idsWhere(all, func(plan.Behavior) bool { return true })
	g.Expect(chosen(t, plan.Selection{Slow: true})).To(Equal(whole))
	g.Expect(whole).To(Satisfy(slices.IsSorted[[]string]))
	g.Expect(len(whole)).To(BeNumerically(">=", 60))
}

func TestPlan_Filtered(t *testing.T) {
	g := NewWithT(t)
	made, err := plan.Make(plan.Selection{Suites: []string{"graceful"}})
	g.Expect(err).NotTo(HaveOccurred())
	for _, behavior := range made.Catalog {
		switch {
		case behavior.Suite() != "graceful":
			g.Expect(made.Filtered(behavior.ID)).To(Equal("not selected"))
		case behavior.Slow:
			g.Expect(made.Filtered(behavior.ID)).To(ContainSubstring("requires --slow"))
		default:
			g.Expect(made.Filtered(behavior.ID)).To(BeEmpty())
		}
	}
}

func TestSelections(t *testing.T) {
	all := catalog(t)
	suite := func(suites ...string) func(plan.Behavior) bool {
		return func(b plan.Behavior) bool { return slices.Contains(suites, b.Suite()) }
	}
	for _, test := range []struct {
		name      string
		selection plan.Selection
		wanted    func(plan.Behavior) bool
	}{
		{"one suite", plan.Selection{Suites: []string{"graceful"}}, suite("graceful")},
		{"two suites", plan.Selection{Suites: []string{"graceful", "cascade"}}, suite("cascade", "graceful")},
		{
			"one id", plan.Selection{LabelFilter: "cascade.foreground.circle"},
			func(b plan.Behavior) bool { return b.ID == "cascade.foreground.circle" },
		},
		{
			"a level", plan.Selection{LabelFilter: "observed"},
			func(b plan.Behavior) bool { return b.Level == v1alpha1.Observed },
		},
		{
			"a feature among others", plan.Selection{LabelFilter: "features: containsAny gc"},
			func(b plan.Behavior) bool { return slices.Contains(b.Features, v1alpha1.GC) },
		},
		{
			"no feature", plan.Selection{LabelFilter: "features: isEmpty"},
			func(b plan.Behavior) bool { return len(b.Features) == 0 },
		},
		{
			"a label filter within a suite", plan.Selection{Suites: []string{"cascade"}, LabelFilter: "observed"},
			func(b plan.Behavior) bool { return b.Suite() == "cascade" && b.Level == v1alpha1.Observed },
		},
		{
			"a regular expression on the statement", plan.Selection{Focus: []string{"dry-run .*nothing"}},
			func(b plan.Behavior) bool { return regexp.MustCompile("dry-run .*nothing").MatchString(b.Statement) },
		},
		{
			"all but a regular expression", plan.Selection{Suites: []string{"finalizers"}, Skip: []string{"dry-run"}},
			func(b plan.Behavior) bool {
				return b.Suite() == "finalizers" && !strings.Contains(b.Statement, "dry-run")
			},
		},
		{
			"several expressions, any of which is enough",
			plan.Selection{Suites: []string{"finalizers"}, Focus: []string{"custom resource", "dry-run delete"}},
			func(b plan.Behavior) bool {
				return b.Suite() == "finalizers" && (strings.Contains(b.Statement, "custom resource") || strings.Contains(b.Statement, "dry-run delete"))
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			test.selection.Slow = true
			want := idsWhere(all, test.wanted)
			g.Expect(want).NotTo(BeEmpty(), "the test itself must be about something")
			g.Expect(chosen(t, test.selection)).To(Equal(want))
			made, err := plan.Make(test.selection)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(made.Catalog).To(Equal(all), "the catalog is whole whatever is selected")
			for _, behavior := range all {
				g.Expect(made.Filtered(behavior.ID) == "").To(Equal(slices.Contains(want, behavior.ID)), behavior.ID)
			}
		})
	}
}

func TestMake_InvalidSelections(t *testing.T) {
	for _, test := range []struct {
		name      string
		selection plan.Selection
		want      []string
	}{
		{"a typing mistake in a suite", plan.Selection{Suites: []string{"cascad"}}, []string{`unknown suite "cascad"`, "cascade, finalizers, graceful", `did you mean "cascade"?`}},
		{"one valid suite and one unknown", plan.Selection{Suites: []string{"graceful", "graces"}}, []string{`unknown suite "graces"`}},
		{"an invalid focus", plan.Selection{Focus: []string{"("}}, []string{`--focus "(" is not a regular expression`}},
		{"an invalid skip", plan.Selection{Skip: []string{"["}}, []string{`--skip "[" is not a regular expression`}},
		{"an invalid label filter", plan.Selection{LabelFilter: "core &&"}, []string{`--label-filter "core &&" is not a label filter: `}},
		{"a label filter with an invalid expression", plan.Selection{LabelFilter: "/(/"}, []string{`--label-filter "/(/" is not a label filter: `}},
		{
			"a label filter that matches nothing", plan.Selection{LabelFilter: "cascade.foreground.circle && slow"},
			[]string{`--label-filter "cascade.foreground.circle && slow"`, "matches none of the", "runner list"},
		},
		{
			"a typing mistake in an id", plan.Selection{LabelFilter: "cascade.foreground.circel"},
			[]string{`no behavior has the label "cascade.foreground.circel"`, "runner list", `did you mean "cascade.foreground.circle"?`},
		},
		{
			"one valid id and one unknown", plan.Selection{LabelFilter: "finalizers.held, !(/x/ || finalizers.holed)"},
			[]string{`no behavior has the label "finalizers.holed"`, `did you mean "finalizers.held"?`},
		},
		{"a typing mistake in a level", plan.Selection{LabelFilter: "cor"}, []string{`no behavior has the label "cor"`, `did you mean "core"?`}},
		{
			"a typing mistake in a feature", plan.Selection{LabelFilter: "core && features: containsAny {gc, kubctl}"},
			[]string{`no behavior has the label "features:kubctl"`, `did you mean "features:kubectl"?`},
		},
		{"an unknown feature alone", plan.Selection{LabelFilter: "!(Features: containsAny Kubctl)"}, []string{`no behavior has the label "features:kubctl"`}},
		{"an unknown key", plan.Selection{LabelFilter: "needs: isEmpty"}, []string{`no behavior has labels with the key "needs"`, "`runner list` prints"}},
		{"a typing mistake in a key", plan.Selection{LabelFilter: "feature: isEmpty"}, []string{`no behavior has labels with the key "feature"`, `did you mean "features"?`}},
		{"the value of another key", plan.Selection{LabelFilter: "disturbs: containsAny {node, kcm namespac}"}, []string{`no behavior has the label "disturbs:kcm namespac"`}},
		{"a suite as a label", plan.Selection{LabelFilter: "cascade"}, []string{`"cascade" is a suite; select it with --suite cascade`}},
		{"slow behaviors only, and not --slow", plan.Selection{LabelFilter: "slow"}, []string{"matches none of the", "slow behaviors require --slow"}},
		{
			"filters that exclude one another", plan.Selection{Suites: []string{"graceful"}, Focus: []string{"custom resource"}, Skip: []string{"x"}},
			[]string{`--suite "graceful" --focus "custom resource" --skip "x"`, "matches none of the"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := plan.Make(test.selection)
			g.Expect(err).To(HaveOccurred())
			for _, want := range test.want {
				g.Expect(err.Error()).To(ContainSubstring(want))
			}
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "one line")
		})
	}
}

func TestLabelFilter_Exact(t *testing.T) {
	all := catalog(t)
	for _, wanted := range [][]string{
		{"cascade.foreground.circle"},
		{"graceful.dry-run", "cascade.orphan.one-level"},
		idsWhere(all, func(plan.Behavior) bool { return true }),
	} {
		matches, err := types.ParseLabelFilter(plan.LabelFilter(wanted))
		if err != nil {
			t.Fatal(err)
		}
		for _, behavior := range all {
			labels := []string{behavior.ID, string(behavior.Level), "features:gc"}
			if got, want := matches(labels), slices.Contains(wanted, behavior.ID); got != want {
				t.Errorf("%d ids, %s: want %t, got %t", len(wanted), behavior.ID, want, got)
			}
		}
	}
	matches, err := types.ParseLabelFilter(plan.LabelFilter([]string{"a.b"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, near := range []string{"a.b.c", "x.a.b", "axb", "a.b-c"} {
		if matches([]string{near}) {
			t.Errorf("%s is not a.b", near)
		}
	}
}

func TestSelection_String(t *testing.T) {
	g := NewWithT(t)
	g.Expect(plan.Selection{}.String()).To(Equal("everything"))
	g.Expect(plan.Selection{Suites: []string{"a", "b"}, LabelFilter: "core"}.String()).To(Equal(`--suite "a" --suite "b" --label-filter "core"`))
}

func TestCatalog_AnyResource(t *testing.T) {
	g := NewWithT(t)
	made, err := plan.Make(plan.Selection{AnyResource: true, Slow: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(made.Chosen())).To(BeNumerically(">", 80))
	for _, behavior := range made.Chosen() {
		g.Expect(behavior.Serial).To(BeFalse(), "%s is alone on its cluster, but not on its resource", behavior.ID)
		g.Expect(behavior.Features).NotTo(ContainElement(v1alpha1.CRD), "%s defines a kind in its group, or is about the run's", behavior.ID)
		g.Expect(behavior.Features).NotTo(ContainElement(v1alpha1.Kubectl), "%s is kubectl's", behavior.ID)
	}
	g.Expect(made.Filtered("graceful.default-grace")).To(ContainSubstring("--resource"))
	g.Expect(made.Filtered("operator.finalizer-before-children")).To(ContainSubstring("--controller"))
}

func TestMake_Controller(t *testing.T) {
	g := NewWithT(t)
	made, err := plan.Make(plan.Selection{AnyResource: true, Controller: true, Suites: []string{"operator"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(made.Chosen())).To(BeNumerically(">=", 6))
	_, err = plan.Make(plan.Selection{AnyResource: true, LabelFilter: "operator.crd-deletion"})
	g.Expect(err).To(MatchError(ContainSubstring("require --controller")))
}

func TestCatalog_CreatesNothing(t *testing.T) {
	g := NewWithT(t)
	made, err := plan.Make(plan.Selection{NoCreate: true})
	g.Expect(err).NotTo(HaveOccurred())
	for _, behavior := range made.Chosen() {
		g.Expect(behavior.Features).To(BeEmpty(), "%s: such a run does not probe features", behavior.ID)
		g.Expect(behavior.Serial).To(BeFalse(), behavior.ID)
	}
	g.Expect(made.Filtered("finalizers.held")).To(ContainSubstring("--no-create"))
	_, err = plan.Make(plan.Selection{NoCreate: true, Suites: []string{"cascade"}})
	g.Expect(err).To(MatchError(ContainSubstring("creates-nothing")))
}

func TestMake_EveryShard(t *testing.T) {
	g := NewWithT(t)
	whole, err := plan.Make(plan.Selection{AnyResource: true})
	g.Expect(err).NotTo(HaveOccurred())
	const shards = 4
	parts := map[string]bool{}
	for _, resource := range []string{"a.example.com", "b.example.com", "c.example.com", "d.example.com"} {
		count := map[string]int{}
		for shard := range shards {
			made, err := plan.Make(plan.Selection{AnyResource: true, Shard: fmt.Sprintf("%d/%d", shard+1, shards)})
			g.Expect(err).NotTo(HaveOccurred())
			chosen := made.For(resource).Chosen()
			g.Expect(len(chosen)).To(BeNumerically("~", len(whole.Chosen())/shards, 1))
			for _, behavior := range chosen {
				count[behavior.ID]++
			}
			if shard == 0 {
				parts[chosen[0].ID] = true
			}
		}
		for _, behavior := range whole.Chosen() {
			g.Expect(count[behavior.ID]).To(Equal(1), behavior.ID)
		}
		g.Expect(count).To(HaveLen(len(whole.Chosen())))
	}
	g.Expect(len(parts)).To(BeNumerically(">", 1), "a shard has other behaviors of other resources")
}

func TestMake_Shard(t *testing.T) {
	g := NewWithT(t)
	whole, err := plan.Make(plan.Selection{Suites: []string{"watch"}})
	g.Expect(err).NotTo(HaveOccurred())
	made, err := plan.Make(plan.Selection{Suites: []string{"watch"}, Shard: "2/3"})
	g.Expect(err).NotTo(HaveOccurred())
	var want []string
	for i, behavior := range whole.Chosen() {
		if i%3 == 1 {
			want = append(want, behavior.ID)
		}
	}
	var got []string
	for _, behavior := range made.For("").Chosen() {
		got = append(got, behavior.ID)
	}
	g.Expect(got).To(Equal(want))
	_, err = plan.Make(plan.Selection{Suites: []string{"watch"}, Shard: "4/3"})
	g.Expect(err).To(MatchError(HavePrefix("--shard: ")))
}
