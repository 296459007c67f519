package claim

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// realReport is the report of a run on an embedded Kubernetes without a node. Behaviors that the run did not select are removed, so the 16
// that remain are its whole catalog.
//
//go:embed claimtest/report.json
var realReport []byte

var example = v1alpha1.Implementation{
	Organization: "Example", Project: "example-kubernetes", Version: "1.4.0", URL: "https://kubernetes.example.com",
	Contact: []string{"conformance@example.com"}, Reproduce: "runner --kubeconfig FILE --slow",
}

// realClaim returns the claim of the real report, with its catalog.
func realClaim(t *testing.T) (v1alpha1.ConformanceReport, []v1alpha1.Behavior) {
	t.Helper()
	whole := v1alpha1.Report{}
	if err := json.Unmarshal(realReport, &whole); err != nil {
		t.Fatal(err)
	}
	for i := range whole.Clusters[0].Results { // the report was made before it contained this
		whole.Clusters[0].Results[i].AnyResource = whole.Clusters[0].Results[i].ID == "finalizers.held"
	}
	return claimOf(t, report.Concluded(whole)), behaviorsOf(whole.Clusters[0])
}

// claimOf returns the claim of a report.
func claimOf(t *testing.T, whole v1alpha1.Report) v1alpha1.ConformanceReport {
	t.Helper()
	content := bytes.Buffer{}
	if err := report.WriteJSON(&content, whole); err != nil {
		t.Fatal(err)
	}
	claim, _, err := Make(Source{Report: content.Bytes(), Implementation: example})
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// encoded returns the content of a claim's file.
func encoded(t *testing.T, claim v1alpha1.ConformanceReport) []byte {
	t.Helper()
	content := bytes.Buffer{}
	if err := Encode(&content, claim); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

// problemsOf returns the reasons for which `runner verify` refuses a claim.
func problemsOf(t *testing.T, content []byte, catalog []v1alpha1.Behavior) []Problem {
	t.Helper()
	of, err := Verify(content, catalog)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(of.Problems, of.Catalog)
}

func TestMake_Resource(t *testing.T) {
	g := NewWithT(t)
	claim, catalog := realClaim(t)
	whole := opened(t, claim)
	whole.Clusters[0].Resource, whole.Clusters[0].Figures = "widgets.example.com", nil
	for i := range whole.Clusters[0].Preflight { // runs of resources do not look for what they do not select
		whole.Clusters[0].Preflight[i].Behaviors = nil
	}
	for i, result := range whole.Clusters[0].Results {
		if !result.AnyResource {
			whole.Clusters[0].Results[i] = v1alpha1.Result{
				Behavior: result.Behavior, Outcome: v1alpha1.Filtered, Reason: "not selected: it does not apply to every resource (--resource)",
			}
		}
	}
	of := claimOf(t, figures.Measure(report.Concluded(whole)))
	g.Expect(problemsOf(t, encoded(t, of), catalog)).To(BeEmpty())
	g.Expect(of.Environment.Resource).To(Equal("widgets.example.com"))
	g.Expect(of.Profiles).To(HaveLen(1))
	g.Expect(of.Profiles[0].Passed).To(ConsistOf("finalizers.held"))
}

func opened(t *testing.T, claim v1alpha1.ConformanceReport) v1alpha1.Report {
	t.Helper()
	whole, _, err := open(claim.Evidence)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

func TestVerify_RealClaim(t *testing.T) {
	g := NewWithT(t)
	claim, catalog := realClaim(t)
	g.Expect(problemsOf(t, encoded(t, claim), catalog)).To(BeEmpty())
	g.Expect(claim.Environment.ServerVersion).To(Equal("v1.37.2"))
	g.Expect(claim.Catalog.Behaviors).To(Equal(16))
	g.Expect(claim.Selection.Selected).To(Equal(16))
	var summary []string
	for _, profile := range claim.Profiles {
		summary = append(summary, string(profile.Profile)+" "+string(profile.Conclusion))
	}
	g.Expect(summary).To(Equal([]string{"api passed", "controllers passed", "admission passed", "kubectl passed"}))
	g.Expect(claim.Profiles[0].Levels).To(Equal([]v1alpha1.LevelCount{
		{Level: v1alpha1.Core, Passed: 5}, {Level: v1alpha1.Extended, Passed: 1, Skipped: 1}, {Level: v1alpha1.Observed, Passed: 2},
	}))
	g.Expect(claim.Profiles[0].Extended.Supported).To(Equal([]string{"watch.terminating-is-streamed"}))
	g.Expect(claim.Profiles[0].Extended.Unsupported).To(Equal([]v1alpha1.ReasonedBehaviors{{
		Reason: "the API server does not accept CBOR: the feature gate CBORServingAndStorage is off", Behaviors: []string{"options.cbor-body"},
	}}))
}

func TestVerify_OtherCatalog(t *testing.T) {
	g := NewWithT(t)
	claim, catalog := realClaim(t)
	known := slices.Clone(catalog[1:])
	known[0].Statement, known[1].Disruptive = "It must be so.", true
	of, err := Verify(encoded(t, claim), append(known, v1alpha1.Behavior{ID: "watch.new", Level: v1alpha1.Core}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(of.Problems).To(BeEmpty(), "it follows from its report")
	g.Expect(of.Catalog).To(Equal([]Problem{
		{"catalog", "the report does not contain watch.new"},
		{"catalog", "the report describes " + known[0].ID + ", " + known[1].ID + " in another way"},
		{"catalog", "this runner does not know " + catalog[0].ID},
	}))
	g.Expect(IsModified(claim)).To(BeFalse())
	claim.Runner = "ec4b4c4-dirty"
	g.Expect(IsModified(claim)).To(BeTrue())
}

// change returns a change of one result.
func change(id string, to func(*v1alpha1.Result)) func(*v1alpha1.Report) {
	return func(whole *v1alpha1.Report) {
		results := whole.Clusters[0].Results
		to(&results[slices.IndexFunc(results, func(result v1alpha1.Result) bool { return result.ID == id })])
	}
}

// forge returns the claim that follows from a changed report: a forger who knows the format computes the verdicts, the figures, the claim and
// the digest again.
func forge(t *testing.T, claim v1alpha1.ConformanceReport, changes ...func(*v1alpha1.Report)) v1alpha1.ConformanceReport {
	t.Helper()
	whole := opened(t, claim)
	for _, change := range changes {
		change(&whole)
	}
	for i := range whole.Clusters {
		whole.Clusters[i].Figures = nil
	}
	return sealed(t, claim, figures.Measure(report.Concluded(whole)))
}

// sealed returns the claim that follows from a report, with the profiles of a claim.
func sealed(t *testing.T, claim v1alpha1.ConformanceReport, whole v1alpha1.Report) v1alpha1.ConformanceReport {
	t.Helper()
	var profiles []v1alpha1.Profile
	for _, result := range claim.Profiles {
		profiles = append(profiles, result.Profile)
	}
	forged := derive(whole, whole.Clusters[0], claim.Implementation, profiles)
	var content bytes.Buffer
	if err := report.WriteJSON(&content, whole); err != nil {
		t.Fatal(err)
	}
	var err error
	if forged.Evidence, err = seal(content.Bytes()); err != nil {
		t.Fatal(err)
	}
	return forged
}

// failed returns a change that makes a behavior fail.
func failed(outcome v1alpha1.Outcome) func(*v1alpha1.Result) {
	return func(result *v1alpha1.Result) {
		result.Outcome, result.Failure = outcome, &v1alpha1.Failure{Message: "expected DELETED, and it is still there", Location: "suites/a.go:1"}
	}
}

func TestVerify_FailedClaim(t *testing.T) {
	claim, catalog := realClaim(t)
	for name, test := range map[string]struct {
		change     func(*v1alpha1.Report)
		conclusion v1alpha1.ProfileConclusion
	}{
		"failed":                     {change("finalizers.held", failed(v1alpha1.Failed)), v1alpha1.ProfileFailed},
		"failed as known":            {change("finalizers.held", failed(v1alpha1.Known)), v1alpha1.ProfileFailed},
		"an extended behavior fails": {change("watch.terminating-is-streamed", failed(v1alpha1.Failed)), v1alpha1.ProfileFailed},
		"deviated":                   {change("finalizers.held-response", failed(v1alpha1.Deviated)), v1alpha1.ProfilePassed},
		"a core behavior is skipped": {change("finalizers.held", func(result *v1alpha1.Result) {
			result.Outcome, result.Reason = v1alpha1.Skipped, "a policy refuses finalizers"
		}), v1alpha1.ProfilePartial},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			honest := forge(t, claim, test.change)
			g.Expect(problemsOf(t, encoded(t, honest), catalog)).To(BeEmpty())
			g.Expect(honest.Profiles[0].Conclusion).To(Equal(test.conclusion))
		})
	}
}

// reports are changed reports from which everything else was computed again, with the reason why their claim is refused.
var reports = []struct {
	name   string
	change func(*v1alpha1.Report)
	want   []string
}{
	{"a behavior was removed", func(whole *v1alpha1.Report) {
		whole.Clusters[0].Results = slices.DeleteFunc(whole.Clusters[0].Results, func(result v1alpha1.Result) bool { return result.ID == "finalizers.held" })
	}, []string{"catalog: the report does not contain finalizers.held"}},
	{"a behavior was added", func(whole *v1alpha1.Report) {
		added := whole.Clusters[0].Results[5]
		added.ID = "finalizers.zeal"
		whole.Clusters[0].Results = append(whole.Clusters[0].Results, added)
	}, []string{"catalog: this runner does not know finalizers.zeal"}},
	{"a core behavior became observed", change("finalizers.held", func(result *v1alpha1.Result) {
		failed(v1alpha1.Deviated)(result)
		result.Level = v1alpha1.Observed
	}), []string{"catalog: the report describes finalizers.held in another way"}},
	{"what applies to every resource was left out for a resource", func(whole *v1alpha1.Report) {
		whole.Clusters[0].Resource = "widgets.example.com"
		change("finalizers.held", func(result *v1alpha1.Result) {
			*result = v1alpha1.Result{Behavior: result.Behavior, Outcome: v1alpha1.Filtered, Reason: "not selected: it does not apply to every resource (--resource)"}
			result.AnyResource = false
		})(whole)
	}, []string{"the report describes finalizers.held in another way"}},
	{"a statement was weakened", change("finalizers.held", func(result *v1alpha1.Result) { result.Statement = "An object may stay." }),
		[]string{"catalog: the report describes finalizers.held"}},
	{"a behavior moved to another profile", change("finalizers.held", func(result *v1alpha1.Result) {
		result.Features = []v1alpha1.Feature{v1alpha1.GC}
	}), []string{"catalog: the report describes finalizers.held"}},
	{"a behavior became disruptive", change("finalizers.held", func(result *v1alpha1.Result) {
		result.Disruptive, result.Outcome, result.Reason = true, v1alpha1.Skipped, "disruptive: run it with --disruptive"
	}), []string{"catalog: the report describes finalizers.held in another way"}},
	{"a failure is too new", change("finalizers.held", func(result *v1alpha1.Result) {
		result.Since, result.Outcome, result.Reason = "1.99", v1alpha1.Skipped, "requires Kubernetes 1.99 or newer"
	}), []string{"catalog: the report describes finalizers.held in another way"}},
	{"an unknown level", change("finalizers.held", func(result *v1alpha1.Result) { result.Level = "soft" }),
		[]string{`finalizers.held: unknown level "soft"`, "catalog: "}},
	{"a cluster that could not be tested", func(whole *v1alpha1.Report) { whole.Clusters[0].Problem = "refused" },
		[]string{"run: the cluster could not be tested: refused"}},
	{"a behavior was not selected", change("finalizers.held", func(result *v1alpha1.Result) {
		*result = v1alpha1.Result{Behavior: result.Behavior, Outcome: v1alpha1.Filtered, Reason: "not selected"}
	}), []string{"profiles[api]: 1 behavior not selected"}},
	{"a failure was changed to passed", change("finalizers.held", func(result *v1alpha1.Result) {
		failed(v1alpha1.Passed)(result)
	}), []string{"finalizers.held: it is passed, and the report contains its failure: expected DELETED, and it is still there"}},
	{"a skip was changed to passed", change("options.cbor-body", func(result *v1alpha1.Result) { result.Outcome = v1alpha1.Passed }),
		[]string{"options.cbor-body: it is passed, and the report contains a reason why not: the API server does not accept CBOR"}},
	{"a failure was changed to skipped", change("finalizers.held", func(result *v1alpha1.Result) {
		failed(v1alpha1.Skipped)(result)
		result.Reason = "missing permission"
	}), []string{"finalizers.held: it is skipped, and the report contains its failure"}},
	{"skipped without a reason", change("finalizers.held", func(result *v1alpha1.Result) { result.Outcome = v1alpha1.Skipped }),
		[]string{"finalizers.held: it is skipped, and the report contains no reason"}},
	{"failed without a failure", change("finalizers.held", func(result *v1alpha1.Result) { result.Outcome = v1alpha1.Failed }),
		[]string{"finalizers.held: it is failed, and the report contains no failure"}},
	{"a core behavior deviated", change("finalizers.held", failed(v1alpha1.Deviated)),
		[]string{"finalizers.held: it is core, and only observed behaviors deviate"}},
	{"errored", change("finalizers.held", func(result *v1alpha1.Result) {
		result.Outcome, result.Reason = v1alpha1.Errored, "connection refused"
	}), []string{"finalizers.held: it has no result, because it was errored: connection refused"}},
	{"an outdated list of known failures", change("finalizers.held", func(result *v1alpha1.Result) {
		result.Outcome, result.Reason = v1alpha1.Outdated, "passed, but is listed as a known failure"
	}), []string{"finalizers.held: the list of known failures of the run is outdated"}},
	{"a profile of which nothing was tested", func(whole *v1alpha1.Report) {
		change("kubectl.dry-run", func(result *v1alpha1.Result) { result.Outcome, result.Reason = v1alpha1.Skipped, "no kubectl" })(whole)
	}, []string{"profiles[kubectl]: no behavior was tested (no kubectl)"}},
	{"interrupted", func(whole *v1alpha1.Report) { whole.Interrupted = true }, []string{"run: it was interrupted"}},
	{"one shard", func(whole *v1alpha1.Report) { whole.Shard = "1/2" }, []string{"shards: the report contains only shard 1/2; merge the reports of all shards"}},
	{"a shard is missing", func(whole *v1alpha1.Report) { whole.RunID, whole.Shards = whole.RunID+"+b+c", []string{"1/3", "3/3"} },
		[]string{"shards: shard 2/3 is missing"}},
	{"shards that were not run", func(whole *v1alpha1.Report) { whole.Shards = []string{"1/2", "2/2"} },
		[]string{"shards: 2 shards cannot come from 1 runs"}},
	{"a run that ended before its start", func(whole *v1alpha1.Report) {
		whole.Start, whole.End = whole.End, whole.Start
	}, []string{"run: it ended at 2026-11-25T15:21:29.145014547Z, before its start at 2026-11-25T15:21:47.997150158Z"}},
}

func TestVerify_ForgedReports(t *testing.T) {
	claim, catalog := realClaim(t)
	for _, test := range reports {
		t.Run(test.name, func(t *testing.T) {
			expectProblems(t, problemsOf(t, encoded(t, forge(t, claim, test.change)), catalog), test.want)
		})
	}
}

// expectProblems expects that each wanted text is in a problem, and that each problem contains a wanted text.
func expectProblems(t *testing.T, problems []Problem, wanted []string) {
	t.Helper()
	unexpected := slices.Clone(problems)
	for _, want := range wanted {
		contains := func(problem Problem) bool { return strings.Contains(problem.String(), want) }
		if !slices.ContainsFunc(problems, contains) {
			t.Errorf("no problem contains %q", want)
		}
		unexpected = slices.DeleteFunc(unexpected, contains)
	}
	if t.Failed() || len(unexpected) > 0 {
		t.Errorf("not expected: %v; all: %v", unexpected, problems)
	}
}

// claims are claims that were changed and not computed again, with the reason why they are refused.
var claims = []struct {
	name   string
	change func(*v1alpha1.ConformanceReport)
	want   []string
}{
	{"more passed", func(claim *v1alpha1.ConformanceReport) { claim.Profiles[0].Levels[0].Passed = 500 },
		[]string{"profiles[api].levels[core].passed: the claim states 500, and the report shows 5"}},
	{"a better conclusion", func(claim *v1alpha1.ConformanceReport) { claim.Profiles[1].Conclusion = v1alpha1.ProfilePartial },
		[]string{`profiles[controllers].conclusion: the claim states "partial", and the report shows "passed"`}},
	{"an id that did not pass", func(claim *v1alpha1.ConformanceReport) {
		claim.Profiles[0].Passed = append(claim.Profiles[0].Passed, "options.cbor-body")
	}, []string{"profiles[api].passed: the claim states "}},
	{"a feature that was skipped", func(claim *v1alpha1.ConformanceReport) {
		claim.Profiles[0].Extended.Supported[0] = "options.cbor-body"
	}, []string{`profiles[api].extended.supported[0]: the claim states "options.cbor-body", and the report shows "watch.terminating-is-streamed"`}},
	{"no skips", func(claim *v1alpha1.ConformanceReport) { claim.Profiles[0].Skipped = nil }, []string{"profiles[api].skipped: the claim states nothing"}},
	{"another server version", func(claim *v1alpha1.ConformanceReport) { claim.Environment.ServerVersion = "v1.38.0" },
		[]string{`environment.serverVersion: the claim states "v1.38.0", and the report shows "v1.37.2"`}},
	{"another kubectl version", func(claim *v1alpha1.ConformanceReport) { claim.Environment.KubectlVersion = "" },
		[]string{`environment.kubectlVersion: the claim states nothing, and the report shows "v1.37.2"`}},
	{"another cluster", func(claim *v1alpha1.ConformanceReport) { claim.Environment.Cluster = "production" },
		[]string{`environment.cluster: the report has no cluster "production", only cluster-1`}},
	{"a hidden finding", func(claim *v1alpha1.ConformanceReport) { claim.Environment.Preflight = claim.Environment.Preflight[1:] },
		[]string{"environment.preflight: the claim states "}},
	{"another runner", func(claim *v1alpha1.ConformanceReport) { claim.Runner = "v1.0.0" },
		[]string{`runner: the claim states "v1.0.0", and the report shows "00191b7"`}},
	{"another catalog", func(claim *v1alpha1.ConformanceReport) { claim.Catalog.Digest = "sha256:0" }, []string{`catalog.digest: the claim states "sha256:0"`}},
	{"a larger selection", func(claim *v1alpha1.ConformanceReport) { claim.Selection.Selected = 450 },
		[]string{"selection.selected: the claim states 450, and the report shows 16"}},
	{"a later end", func(claim *v1alpha1.ConformanceReport) { claim.End = claim.End.AddDate(1, 0, 0) }, []string{`end: the claim states "2027-`}},
	{"shards", func(claim *v1alpha1.ConformanceReport) { claim.Shards = []string{"1/1"} }, []string{`shards: the claim states ["1/1"], and the report shows nothing`}},
	{"no profile", func(claim *v1alpha1.ConformanceReport) { claim.Profiles = nil }, []string{"profiles: the claim has none", "profiles: the claim states nothing"}},
	{"an unknown profile", func(claim *v1alpha1.ConformanceReport) { claim.Profiles[0].Profile = "everything" },
		[]string{`profiles: unknown profile "everything"`, "profiles: the claim states"}},
	{"a profile twice", func(claim *v1alpha1.ConformanceReport) { claim.Profiles[1] = claim.Profiles[0] },
		[]string{"profiles: api is duplicate", "profiles: the claim states"}},
	{"a profile that was not tested", func(claim *v1alpha1.ConformanceReport) {
		claim.Profiles = slices.Insert(claim.Profiles, 2, v1alpha1.ProfileResult{Profile: v1alpha1.ProfileNode, Conclusion: v1alpha1.ProfilePassed})
	}, []string{"profiles[node]: no behavior was tested (the cluster was created without a node (--nodes 0))", "profiles[node]."}},
	{"another report", func(claim *v1alpha1.ConformanceReport) {
		claim.Evidence.SHA256 = strings.Repeat("0", 64)
	}, []string{"evidence: the SHA-256 of the report is "}},
	{"no report", func(claim *v1alpha1.ConformanceReport) { claim.Evidence = v1alpha1.ClaimEvidence{} },
		[]string{"evidence: the report cannot be decompressed: EOF"}},
	{"half of a report", func(claim *v1alpha1.ConformanceReport) { claim.Evidence.Report = claim.Evidence.Report[:1000] },
		[]string{"evidence: the report cannot be decompressed: unexpected EOF"}},
	{"not a report", func(claim *v1alpha1.ConformanceReport) { claim.Evidence, _ = seal([]byte(`{"kind": "List"}`)) },
		[]string{`evidence: not a report of this project: kind is "List"`}},
	{"edited verdicts", func(claim *v1alpha1.ConformanceReport) {
		editReport(claim, `"conclusion": "conformant"`, `"conclusion": "not conformant"`)
	},
		[]string{"verdicts: the report states cluster not conformant, kubectl v1.37.2 conformant, and its results are cluster conformant, kubectl v1.37.2 conformant"}},
	{"edited counts", func(claim *v1alpha1.ConformanceReport) {
		editReport(claim, `"counts": {`, `"counts": {"failed": 1,`)
	}, []string{"counts: they do not follow from the results"}},
	{"edited figures", func(claim *v1alpha1.ConformanceReport) {
		editReport(claim, `"p50Seconds": 2.905722`, `"p50Seconds": 0.1`)
	},
		[]string{"figures: they do not follow from the timelines"}},
	{"an edited outcome", func(claim *v1alpha1.ConformanceReport) {
		editReport(claim, `"outcome": "passed"`, `"outcome": "failed"`)
	}, []string{"admission.denial-changes-nothing: it is failed, and the report contains no failure", "verdicts: ", "counts: ", "profiles[admission]"}},
	{"a result twice", func(claim *v1alpha1.ConformanceReport) {
		editReport(claim, `"id": "cascade.background.late-dependent"`, `"id": "finalizers.held"`)
	}, []string{`evidence: clusters[0].results[6].id is duplicate: "finalizers.held"`}},
	{"an unknown outcome", func(claim *v1alpha1.ConformanceReport) {
		editReport(claim, `"outcome": "passed"`, `"outcome": "fine"`)
	}, []string{`evidence: clusters[0].results[0].outcome is "fine"`}},
	{"a long project", func(claim *v1alpha1.ConformanceReport) { claim.Implementation.Project = strings.Repeat("x", 300) },
		[]string{"implementation: project is longer than 80 characters"}},
	{"hidden text in a contact", func(claim *v1alpha1.ConformanceReport) { claim.Implementation.Contact = []string{"a\u202eb"} },
		[]string{"implementation: contact contains invisible characters"}},
	{"no project", func(claim *v1alpha1.ConformanceReport) { claim.Implementation.Project = " " }, []string{"implementation: project is missing"}},
	{"no contact", func(claim *v1alpha1.ConformanceReport) { claim.Implementation.Contact = nil }, []string{"implementation: contact is missing"}},
	{"no way to reproduce it", func(claim *v1alpha1.ConformanceReport) { claim.Implementation.Reproduce = "" }, []string{"implementation: reproduce is missing"}},
	{"a script as page", func(claim *v1alpha1.ConformanceReport) { claim.Implementation.URL = "javascript:alert(1)" },
		[]string{`implementation: url "javascript:alert(1)" is not an address that begins with https://`}},
}

func TestVerify_ReportOfAnEarlierRunner(t *testing.T) {
	claim, catalog := realClaim(t)
	whole := opened(t, claim)
	whole.Counts, whole.Verdicts[0].Reason = nil, "13 behaviors passed, 2 skipped"
	expectProblems(t, problemsOf(t, encoded(t, sealed(t, claim, whole)), catalog), nil)
}

func TestVerify_StrictSchema(t *testing.T) {
	claim, catalog := realClaim(t)
	for name, test := range map[string]struct{ old, edited, want string }{
		"unknown":                  {`"kind": `, `"certified": true, "kind": `, `unknown field "certified"`},
		"unknown in a list":        {`"level": "core"`, `"level": "core", "weight": 2`, `unknown field "profiles[0].levels[0].weight"`},
		"duplicate":                {`"profile": "api"`, `"profile": "api", "profile": "api"`, `duplicate field "profiles[0].profile"`},
		"another case":             {`"evidence": {`, `"Profiles": [], "evidence": {`, `unknown field "Profiles"`},
		"another case of evidence": {`"sha256": `, `"SHA256": "0", "sha256": `, `unknown field "evidence.SHA256"`},
	} {
		t.Run("claim/"+name, func(t *testing.T) {
			content := strings.Replace(string(encoded(t, claim)), test.old, test.edited, 1)
			expectProblems(t, problemsOf(t, []byte(content), catalog), []string{"claim: " + test.want})
		})
	}
	content, err := expand(claim.Evidence)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ old, edited, want string }{
		"unknown":                {`"runID": `, `"signature": "x", "runID": `, `unknown field "signature"`},
		"another case":           {`"outcome": "passed"`, `"outcome": "passed", "Outcome": "failed"`, `unknown field "clusters[0].results[0].Outcome"`},
		"duplicate":              {`"outcome": "passed"`, `"outcome": "failed", "outcome": "passed"`, `duplicate field "clusters[0].results[0].outcome"`},
		"duplicate in a request": {`"verb": "POST"`, `"verb": "DELETE", "verb": "POST"`, `duplicate field "clusters[0].results[0].timeline.requests[0].verb"`},
		"unknown in an event":    {`"type": "ADDED"`, `"type": "ADDED", "Type": ""`, `unknown field "clusters[0].results[0].timeline.events[0].Type"`},
		"escaped":                {`"outcome": "passed"`, `"\u006futcome": "failed", "outcome": "passed"`, `duplicate field "clusters[0].results[0].outcome"`},
	} {
		t.Run("evidence/"+name, func(t *testing.T) {
			claim := claim
			claim.Evidence, _ = seal([]byte(strings.Replace(string(content), test.old, test.edited, 1)))
			expectProblems(t, problemsOf(t, encoded(t, claim), catalog), []string{"evidence: " + test.want})
		})
	}
}

// editReport edits the text of the report in a claim, and computes its digest again.
func editReport(claim *v1alpha1.ConformanceReport, old, edited string) {
	claim.Evidence, _ = seal([]byte(strings.Replace(string(realReport), old, edited, 1)))
}

func TestVerify_ForgedClaims(t *testing.T) {
	for _, test := range claims {
		t.Run(test.name, func(t *testing.T) {
			claim, catalog := realClaim(t)
			test.change(&claim)
			expectProblems(t, problemsOf(t, encoded(t, claim), catalog), test.want)
		})
	}
}
