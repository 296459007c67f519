package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func result(id string, outcome v1alpha1.Outcome, seconds float64) v1alpha1.Result {
	return v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: id}, Outcome: outcome, Seconds: seconds}
}

func TestSave_Passed(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "of", "folders", "durations.json")
	run := v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Results: []v1alpha1.Result{
		result("a.passed", v1alpha1.Passed, 1.5), result("a.failed", v1alpha1.Failed, 30), result("a.errored", v1alpha1.Errored, 30),
		result("a.skipped", v1alpha1.Skipped, 0), result("a.before", v1alpha1.Interrupted, 1), result("a.deviated", v1alpha1.Deviated, 30),
	}}}}

	g.Expect(saveDurations(file, map[string]time.Duration{"a.before": time.Minute}, run)).To(Succeed())

	g.Expect(loadDurations(file)).To(Equal(map[string]time.Duration{
		"a.passed": 1500 * time.Millisecond, "a.before": time.Minute,
	}))
	left, err := os.ReadDir(filepath.Dir(file))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(HaveLen(1), "no half-written file is left")
}

func TestSave_LongDuration(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "durations.json")
	for _, seconds := range []float64{4, 2} {
		run := v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Results: []v1alpha1.Result{result("a.b", v1alpha1.Passed, seconds)}}}}
		g.Expect(saveDurations(file, loadDurations(file), run)).To(Succeed())
	}
	g.Expect(loadDurations(file)).To(HaveKeyWithValue("a.b", 3*time.Second))
}

func TestLoad_Unreadable(t *testing.T) {
	g := NewWithT(t)
	broken := filepath.Join(t.TempDir(), "durations.json")
	for _, content := range []string{"", "{", `["a"]`, `{"a.b": "soon"}`, "null"} {
		g.Expect(os.WriteFile(broken, []byte(content), 0o600)).To(Succeed())
		g.Expect(loadDurations(broken)).To(Equal(map[string]time.Duration{}), content)
	}
	g.Expect(loadDurations(filepath.Join(t.TempDir(), "absent"))).To(BeEmpty())
}

func TestSave_Failure(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "a-file")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	err := saveDurations(filepath.Join(file, "durations.json"), map[string]time.Duration{}, v1alpha1.Report{})
	g.Expect(err).To(MatchError(ContainSubstring("remember durations")))
}

func TestFile(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("XDG_CACHE_HOME", "/somebodys/cache")
	t.Setenv("HOME", "/somebody")
	file, err := DurationsFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file).To(HaveSuffix(filepath.Join("deletion-conformance", "durations.json")))
	g.Expect(file).To(HavePrefix("/somebody"))
}
