package matrix

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// tooOld returns a behavior that was skipped because it requires a later version.
func tooOld(id string) v1alpha1.Result {
	return reporttest.Because(reporttest.Unstarted(id, "is | new", v1alpha1.Skipped), "requires Kubernetes 1.33 or newer; the version of the server is v1.30.14")
}

func passed(id string) v1alpha1.Result { return reporttest.Ran(id, "is | new", v1alpha1.Passed) }

func failed(id string) v1alpha1.Result { return reporttest.Ran(id, "is | new", v1alpha1.Failed) }

// joined returns the reports of two versions as join merges them.
func joined(t *testing.T, old, recent []v1alpha1.Result) v1alpha1.Report {
	t.Helper()
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	for version, results := range map[string][]v1alpha1.Result{"1.30.14": old, "1.36.3": recent} {
		var written bytes.Buffer
		g.Expect(report.WriteJSON(&written, reporttest.Run(version, 0, reporttest.OnCluster("local", results...)))).To(Succeed())
		folder := filepath.Join(reportFolder, version)
		g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, "report.json"), written.Bytes(), 0o644)).To(Succeed())
	}
	whole, err := join([]string{"1.30.14", "1.36.3"})
	g.Expect(err).NotTo(HaveOccurred())
	return whole
}

func TestTable(t *testing.T) {
	g := NewWithT(t)
	leftOut := reporttest.Unstarted("s.filtered", "is left out", v1alpha1.Filtered)
	whole := joined(t,
		[]v1alpha1.Result{tooOld("s.new"), passed("s.same"), failed("s.mended"), leftOut},
		[]v1alpha1.Result{passed("s.new"), passed("s.same"), passed("s.mended"), leftOut})
	g.Expect(isWhole(whole)).To(BeFalse())
	table := tableOf(whole, matrix{Explanations: map[string]string{"s.mended": "upstream broke it in 1.30.3 and mended it in 1.31.0"}})
	g.Expect(table.problems).To(BeEmpty())
	table.checkUnused(matrix{Explanations: map[string]string{"s.mended": "so", "s.same": "so", "s.gone": "so"}})
	g.Expect(errors.Join(table.problems...)).To(MatchError("hack/survey/matrix/matrix.yaml explains s.gone, which does not differ\n" +
		"hack/survey/matrix/matrix.yaml explains s.same, which does not differ"))

	var differing, all bytes.Buffer
	g.Expect(table.print(&differing, false)).To(Succeed())
	g.Expect(differing.String()).To(Equal(`BEHAVIOR   1.30.14   1.36.3   WHY
s.mended   failed    passed   upstream broke it in 1.30.3 and mended it in 1.31.0
s.new      skipped   passed   requires Kubernetes 1.33 or newer
2 of 3 behaviors differ
`))
	g.Expect(table.print(&all, true)).To(Succeed())
	g.Expect(all.String()).To(MatchRegexp(`(?m)^s.same +passed +passed`))
	g.Expect(table.markdown()).To(HaveSuffix("1 of 3 behaviors have the same result on all versions. The others are\nlisted below, with the reason.\n\n" + `| outcome | 1.30.14 | 1.36.3 |
|---|---|---|
| passed | 1 | 3 |
| failed | 1 | 0 |
| skipped | 1 | 0 |
| filtered | 1 | 1 |

## Differences

| behavior | 1.30.14 | 1.36.3 | why |
|---|---|---|---|
| s.mended: is \| new | failed | passed | upstream broke it in 1.30.3 and mended it in 1.31.0 |
| s.new: is \| new | skipped | passed | requires Kubernetes 1.33 or newer |
`))
}

func TestTable_Unexplained(t *testing.T) {
	for name, test := range map[string]struct {
		old, recent []v1alpha1.Result
		want        string
	}{
		"a failure on one version":          {[]v1alpha1.Result{failed("s.x")}, []v1alpha1.Result{passed("s.x")}, "s.x differs without an explanation"},
		"a failure where it is not skipped": {[]v1alpha1.Result{tooOld("s.x")}, []v1alpha1.Result{failed("s.x")}, "s.x passes on none of the versions"},
		"a failure everywhere":              {[]v1alpha1.Result{failed("s.x")}, []v1alpha1.Result{failed("s.x")}, "s.x passes on none of the versions"},
		"only one version has it":           {nil, []v1alpha1.Result{passed("s.x")}, "s.x differs without an explanation"},
		"not tested": {
			[]v1alpha1.Result{passed("s.x")}, []v1alpha1.Result{reporttest.Ran("s.x", "is | new", v1alpha1.Errored)},
			"s.x could not be tested on 1.36.3",
		},
		"a later version": {[]v1alpha1.Result{tooOld("s.x")}, []v1alpha1.Result{passed("s.x")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			whole := joined(t, test.old, test.recent)
			g.Expect(isWhole(whole)).To(BeTrue())
			table := tableOf(whole, matrix{})
			if test.want == "" {
				g.Expect(table.problems).To(BeEmpty())
				return
			}
			g.Expect(errors.Join(table.problems...)).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestMatrix_NewestVersion(t *testing.T) {
	g := NewWithT(t)
	matrix, err := readMatrix()
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile("../../../kubernetes/go.mod")
	g.Expect(err).NotTo(HaveOccurred())
	mod, err := modfile.Parse("go.mod", content, nil)
	g.Expect(err).NotTo(HaveOccurred())
	for _, require := range mod.Require {
		if require.Mod.Path == "k8s.io/kubernetes" {
			g.Expect("v" + matrix.Versions[len(matrix.Versions)-1]).To(Equal(require.Mod.Version))
		}
	}
}
