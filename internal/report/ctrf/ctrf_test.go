package ctrf_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/ctrf"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// document is what the tests read of a CTRF document.
type document struct {
	RunID   string
	Results struct {
		Summary     map[string]any
		Tests       []test
		Environment map[string]any
	}
}

type test struct {
	TestID, Name, Status, RawStatus, Message, Trace, FilePath string
	Suite                                                     []string
	Duration, Start, Stop, Line, Retries                      int
	Labels                                                    map[string]any
	RetryAttempts                                             []map[string]any
}

func written(t *testing.T, r v1alpha1.Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := ctrf.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(t *testing.T, r v1alpha1.Report) (d document) {
	t.Helper()
	if err := json.Unmarshal(written(t, r), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWrite_Schema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile("testdata/ctrf-schema-0.0.json")
	if err != nil {
		t.Fatal(err)
	}
	again := reporttest.WithEarlierTry(reporttest.Ran("x.a", "a", v1alpha1.Errored), "connection reset")
	reports := []v1alpha1.Report{
		reporttest.Sample(), {}, reporttest.Fleet(20, 3), reporttest.Run("r", 0, reporttest.OnCluster("a", again)),
		reporttest.Run("r", 0, v1alpha1.Cluster{Name: "gone", Problem: "refused"}),
	}
	for _, text := range reporttest.Hostile {
		reports = append(reports, reporttest.WithText(text))
	}
	for _, r := range reports {
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(written(t, r)))
		if err == nil {
			err = schema.Validate(instance)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestWrite_Outcomes(t *testing.T) {
	started := func(outcome v1alpha1.Outcome) v1alpha1.Result { return reporttest.Ran("x.a", "a", outcome) }
	for _, c := range []struct {
		result v1alpha1.Result
		strict bool
		want   string
	}{
		{started(v1alpha1.Passed), false, "passed"},
		{started(v1alpha1.Failed), false, "failed"},
		{started(v1alpha1.Outdated), false, "failed"},
		{started(v1alpha1.Known), false, "other"},
		{started(v1alpha1.Known), true, "other"},
		{started(v1alpha1.Deviated), false, "other"},
		{started(v1alpha1.Deviated), true, "failed"},
		{started(v1alpha1.Errored), false, "failed"},
		{started(v1alpha1.Interrupted), false, "failed"},
		{reporttest.Unstarted("x.a", "a", v1alpha1.Interrupted), false, "pending"},
		{reporttest.Unstarted("x.a", "a", v1alpha1.Skipped), false, "skipped"},
	} {
		g := NewWithT(t)
		r := reporttest.Run("r", 0, reporttest.OnCluster("a", c.result))
		r.Strict = c.strict
		d := read(t, r)
		g.Expect(d.Results.Tests).To(ConsistOf(And(HaveField("Status", c.want), HaveField("RawStatus", string(c.result.Outcome)))))
		g.Expect(d.Results.Summary).To(And(HaveKeyWithValue("tests", 1.0), HaveKeyWithValue(c.want, 1.0)), string(c.result.Outcome))
	}
}

func TestWrite_Behavior(t *testing.T) {
	g := NewWithT(t)
	failing := reporttest.WithEarlierTry(reporttest.Failing(reporttest.Ran("cascade.a", "A must be deleted.", v1alpha1.Failed)), "connection reset")
	d := read(t, reporttest.Run("dcabc", 0, reporttest.OnCluster("kind-a", failing, reporttest.Unstarted("cascade.b", "b", v1alpha1.Filtered))))
	g.Expect(d.RunID).To(Equal("dcabc"))
	g.Expect(d.Results.Tests).To(HaveLen(1), "what was not selected is no test")
	g.Expect(d.Results.Summary).To(And(HaveKeyWithValue("suites", 1.0), HaveKeyWithValue("duration", 60_000.0),
		HaveKeyWithValue("extra", HaveKeyWithValue("notSelected", 1.0))))
	g.Expect(d.Results.Environment).To(And(HaveKeyWithValue("appVersion", "v1.36.3"), HaveKeyWithValue("healthy", false)))
	start := int(reporttest.Start.UnixMilli())
	got := d.Results.Tests[0]
	g.Expect(got.Message).To(HavePrefix(failing.Failure.Message))
	g.Expect(got.Trace).To(ContainSubstring("Timeline, in seconds since its first entry:"))
	got.Message, got.Trace = "", ""
	g.Expect(got).To(Equal(test{
		TestID: "cascade.a@kind-a", Name: "cascade.a: A must be deleted.", Status: "failed", RawStatus: "failed", Suite: []string{"kind-a", "cascade"},
		FilePath: "suites/cascade/foreground.go", Line: 42, Start: start + 1000, Stop: start + 2500, Duration: 1500, Retries: 1,
		Labels: map[string]any{
			"id": "cascade.a", "level": "core", "cluster": "kind-a", "server-version": "v1.36.3", "features": []any{"gc"},
			"cause": report.CauseOf(failing),
		},
		RetryAttempts: []map[string]any{{
			"attempt": 1.0, "status": "other", "message": "connection reset", "duration": 500.0, "start": float64(start), "stop": float64(start + 500),
		}},
	}))
}

func TestWrite_ClusterProblem(t *testing.T) {
	g := NewWithT(t)
	d := read(t, reporttest.Run("r", 0, v1alpha1.Cluster{Name: "gone", Problem: "connection refused"}))
	g.Expect(d.Results.Tests).To(ConsistOf(And(
		HaveField("Status", "failed"), HaveField("Suite", []string{"gone", "preflight"}), HaveField("Message", "connection refused"))))
}

func TestWrite_TerminalEscapes(t *testing.T) {
	for _, text := range reporttest.Hostile {
		if document := string(written(t, reporttest.WithText(text))); strings.ContainsAny(document, "\x1b\u009b\x00\u202e\r") {
			t.Errorf("%q brings a character out that a terminal obeys", text)
		}
	}
}
