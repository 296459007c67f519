package report_test

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func jsonOf(t *testing.T, r v1alpha1.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.WriteJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// read reads a report.json with some content; errors name it old.json.
func read(t *testing.T, content string) (v1alpha1.Report, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("old.json", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return report.Read("old.json")
}

func TestWriteJSON_RoundTrip(t *testing.T) {
	g := NewWithT(t)
	written := reporttest.Sample()
	again, err := read(t, jsonOf(t, written))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(jsonOf(t, again)).To(Equal(jsonOf(t, written)))
	g.Expect(again.Clusters[0].Results[1].Timeline.Events).To(HaveLen(5))
	g.Expect(again.Clusters[0].Results[5].Start.IsZero()).To(BeTrue())
}

func TestWriteJSON_HostileText(t *testing.T) {
	for _, text := range reporttest.Hostile {
		encoded := jsonOf(t, reporttest.WithText(text))
		if i := strings.IndexFunc(encoded, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e' }); i >= 0 {
			t.Errorf("%q leaves %q in report.json", text, encoded[i:i+4])
		}
		if text == "" {
			continue
		}
		again, err := read(t, encoded)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got, want := again.Clusters[0].Results[1].Failure.Message, strings.ToValidUTF8(text, "\ufffd"); strings.Trim(got, "\ufffd") != strings.Trim(want, "\ufffd") && !strings.Contains(text, "\xff") {
			t.Errorf("%q is read back as %q", text, got)
		}
	}
}

func TestRead_Invalid(t *testing.T) {
	valid := jsonOf(t, reporttest.Sample())
	for name, c := range map[string]struct{ content, want string }{
		"empty":        {" \n", "read report old.json: the file is empty: the run was killed before it was written"},
		"cut off":      {strings.Split(valid, `"kind-a"`)[0], "unexpected end of JSON input"},
		"no JSON":      {"<html>\n", "invalid character '<' looking for beginning of value"},
		"bad in line":  {"{\n  \"kind\": nope\n}", "invalid character 'o' in literal null"},
		"old features": {strings.Replace(valid, `"features": [`, `"capabilities": [`, 1), "clusters[0].features is missing, as in reports of earlier runners: use the runner that wrote the report"},
		"old needs":    {strings.Replace(valid, `"features": [],`, `"needs": [],`, 1), ".features is missing, as in reports of earlier runners"},
		"an array":     {"[1]", "cannot unmarshal array into Go value of type struct"},
		"foreign":      {`{"kind": "List", "apiVersion": "v1"}`, `not a report of this project: kind is "List", must be "DeletionConformanceReport"`},
		"no kind":      {`{}`, `kind is ""`},
		"odd kind":     {`{"kind": ["a"]}`, `kind is "[\"a\"]"`},
		"future":       {strings.Replace(valid, "v1alpha1", "v9", 1), `apiVersion is "deletion-conformance.github.io/v9", must be "deletion-conformance.github.io/v1alpha1"`},
		"invalid type": {strings.Replace(valid, `"seconds": 1.5`, `"seconds": "long"`, 1), `cannot unmarshal string into Go struct field Result.clusters.results.seconds of type float64`},
		"invalid time": {strings.Replace(valid, `"2026-03-04T05:06:20.235Z"`, `"yesterday"`, 1), "yesterday"},
		"outcome":      {strings.Replace(valid, `"outcome": "deviated"`, `"outcome": "fine"`, 1), `clusters[0].results[2].outcome is "fine", must be one of [passed`},
		"no id":        {strings.Replace(valid, `"id": "cascade.background.owner-removed-first"`, `"id": ""`, 1), `clusters[0].results[0].id is missing`},
		"double":       {strings.Replace(valid, `"graceful.other-kinds"`, `"graceful.node.grace-zero"`, 1), `clusters[0].results[6].id is duplicate: "graceful.node.grace-zero"`},
		"same cluster": {strings.Replace(valid, `"name": "gone"`, `"name": "kind-a"`, 1), `clusters[2].name is duplicate: "kind-a"`},
		"no name":      {strings.Replace(valid, `"name": "gone"`, `"name": ""`, 1), `clusters[2].name is missing`},
		"two reports":  {valid + valid, "invalid character '{' after top-level value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, c.content)
			g := NewWithT(t)
			g.Expect(err).To(MatchError(And(HavePrefix("read report old.json: "), ContainSubstring(c.want))))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"))
		})
	}
}

func TestRead_MissingFile(t *testing.T) {
	_, err := report.Read("absent.json")
	NewWithT(t).Expect(err).To(MatchError("read report: open absent.json: no such file or directory"))
}

func TestRead_OlderReport(t *testing.T) {
	g := NewWithT(t)
	old := reporttest.Sample()
	for _, result := range old.Clusters[0].Results {
		for i := range result.Timeline.Requests {
			result.Timeline.Requests[i].Object = nil
		}
	}
	again, err := read(t, jsonOf(t, old))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Clusters[0].Figures).To(Equal(reporttest.Sample().Clusters[0].Figures))
}

func TestRead_Bomb(t *testing.T) {
	g := NewWithT(t)
	bomb := `{"apiVersion":"` + v1alpha1.APIVersion + `","kind":"` + v1alpha1.Kind + `","clusters":[{"name":"c","results":[` + strings.Repeat("{},", 1_000_000) + "{}]}]}"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := report.Decode([]byte(bomb))
	runtime.ReadMemStats(&after)
	g.Expect(err).To(MatchError(ContainSubstring("more elements than a report of this size")))
	g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 2*len(bomb)))
}

func TestRead_Endless(t *testing.T) {
	_, err := report.Read("/dev/zero")
	NewWithT(t).Expect(err).To(MatchError("read report /dev/zero: larger than 256 MiB"))
}
