package knownfailures

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var ids = []string{"cascade.foreground.circle", "finalizers.held"}

func TestRead(t *testing.T) {
	g := NewWithT(t)
	list, err := Read(file(t, `# what we know of
- id: cascade.foreground.circle
  reason: "owner/repo#12: the collector of our fork does not break circles"
  until: 2026-12-31
- {id: finalizers.held, resource: widgets.example.com, reason: the operator wipes finalizers}
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(Equal(List{
		{ID: "cascade.foreground.circle", Reason: "owner/repo#12: the collector of our fork does not break circles", Until: "2026-12-31"},
		{ID: "finalizers.held", Resource: "widgets.example.com", Reason: "the operator wipes finalizers"},
	}))
	g.Expect(list.Check(ids)).To(Succeed())

	for _, content := range []string{"", "# nothing left\n", "[]"} {
		g.Expect(Read(file(t, content))).To(BeEmpty())
	}
}

func TestRead_Invalid(t *testing.T) {
	const first = "- {id: finalizers.held, reason: a}\n"
	for content, want := range map[string]string{
		first + "- {id: finalizers.hold, reason: b}":            `entry 2 (finalizers.hold): unknown behavior "finalizers.hold"; did you mean "finalizers.held"?`,
		"- {id: nonsense, reason: b}":                           "entry 1 (nonsense): unknown behavior \"nonsense\"; `runner list` prints the ids",
		first + "- {id: finalizers.held, reason: b}":            "entry 2 (finalizers.held): duplicate of entry 1: remove one of them",
		first + "- {id: finalizers.held}":                       "entry 2 (finalizers.held): reason is missing",
		first + "- {id: finalizers.held, reason: '  '}":         "entry 2 (finalizers.held): reason is missing",
		first + "- {reason: b}":                                 "entry 2: id is missing",
		"- {id: finalizers.held, reason: b, until: 2026-13-01}": `entry 1 (finalizers.held): until "2026-13-01" is not a date; write it as 2026-12-31`,
		"- {id: finalizers.held, reason: b, until: tomorrow}":   `entry 1 (finalizers.held): until "tomorrow" is not a date; write it as 2026-12-31`,
		"- {id: finalizers.held, reason: b, until: 2026}":       "entry 1: until must be text, and is a number",
		"- {id: finalizers.held, reason: b, unitl: 2026-12-31}": `entry 1: unknown field "unitl"; the fields are id, resource, reason and until`,
		"- {id: finalizers.held, reason: b, resource: 'a b'}":   `entry 1 (finalizers.held a b): resource "a b" is not the name of a resource; write it as widgets.example.com or widgets.example.com/v1`,
		"- finalizers.held":                                     "entry 1: it must have fields (id, resource, reason, until), and is a string",
		"id: finalizers.held":                                   "it must be a list of entries, each with id and reason, and optionally resource and until",
		"- id: finalizers.held\n  id: finalizers.held":          `it is not YAML: yaml: unmarshal errors: line 2: key "id" already set in map`,
		"- {": "it is not YAML: yaml: line 1: did not find expected node content",
		"- {id: finalizers.held, reason: a, resource: widgets.example.com}\n- {id: finalizers.held, reason: b, resource: widgets.example.com}": "entry 2 (finalizers.held widgets.example.com): duplicate of entry 1: remove one of them",
	} {
		list, err := Read(file(t, content))
		if err == nil {
			err = list.Check(ids)
		}
		NewWithT(t).Expect(err).To(MatchError(want), content)
	}
	_, err := Read(filepath.Join(t.TempDir(), "gone"))
	NewWithT(t).Expect(err).To(MatchError("no such file or directory"))
}

func TestList_Apply(t *testing.T) {
	day := time.Date(2026, 6, 30, 23, 0, 0, 0, time.UTC)
	always := List{{ID: "a", Reason: "bug 1"}}
	dated := List{{ID: "a", Reason: "bug 1", Until: "2026-06-30"}}
	over := List{{ID: "a", Reason: "bug 1", Until: "2026-06-29"}}
	const passed, ended = "passed, but is listed as a known failure (bug 1): remove the entry", "no longer a known failure: its entry ended on 2026-06-29 (bug 1)"
	for _, test := range []struct {
		name     string
		list     List
		strict   bool
		resource string
		was, is  v1alpha1.Outcome
		reason   string
	}{
		{"failed", always, false, "", v1alpha1.Failed, v1alpha1.Known, "known failure: bug 1"},
		{"failed on a resource", always, false, "widgets.example.com", v1alpha1.Failed, v1alpha1.Known, "known failure: bug 1"},
		{"failed on the last day", dated, false, "", v1alpha1.Failed, v1alpha1.Known, "known failure: bug 1 (until 2026-06-30)"},
		{"failed when the date is over", over, false, "", v1alpha1.Failed, v1alpha1.Failed, ended},
		{"deviated", always, false, "", v1alpha1.Deviated, v1alpha1.Known, "known failure: bug 1"},
		{"deviated when the date is over", over, false, "", v1alpha1.Deviated, v1alpha1.Outdated, ended + ": extend or remove the entry"},
		{"deviated when the date is over, strict", over, true, "", v1alpha1.Deviated, v1alpha1.Deviated, ended},
		{"passed", always, false, "", v1alpha1.Passed, v1alpha1.Outdated, passed},
		{"passed when the date is over", over, false, "", v1alpha1.Passed, v1alpha1.Outdated, passed},
		{"skipped", over, false, "", v1alpha1.Skipped, v1alpha1.Skipped, ""},
		{"errored", over, false, "", v1alpha1.Errored, v1alpha1.Errored, ""},
		{"interrupted", always, false, "", v1alpha1.Interrupted, v1alpha1.Interrupted, ""},
		{"not selected", over, false, "", v1alpha1.Filtered, v1alpha1.Filtered, ""},
		{"another behavior", List{{ID: "b", Reason: "bug 1"}}, false, "", v1alpha1.Failed, v1alpha1.Failed, ""},
		{"another resource", List{{ID: "a", Reason: "bug 1", Resource: "gadgets.example.com"}}, false, "widgets.example.com", v1alpha1.Failed, v1alpha1.Failed, ""},
		{"no resource", List{{ID: "a", Reason: "bug 1", Resource: "gadgets.example.com"}}, false, "", v1alpha1.Failed, v1alpha1.Failed, ""},
		{"any version", List{{ID: "a", Reason: "bug 1", Resource: "widgets.example.com"}}, false, "widgets.example.com/v1", v1alpha1.Failed, v1alpha1.Known, "known failure: bug 1"},
		{"another version", List{{ID: "a", Reason: "bug 1", Resource: "widgets.example.com/v2"}}, false, "widgets.example.com/v1", v1alpha1.Failed, v1alpha1.Failed, ""},
		{"the entry of the resource first", List{{ID: "a", Reason: "all"}, {ID: "a", Reason: "bug 1", Resource: "widgets.example.com"}}, false, "widgets.example.com", v1alpha1.Failed, v1alpha1.Known, "known failure: bug 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			result := test.list.Apply(v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: "a"}, Outcome: test.was}, test.resource, day, test.strict)
			g.Expect(result.Outcome).To(Equal(test.is))
			g.Expect(result.Reason).To(Equal(test.reason))
		})
	}
}
