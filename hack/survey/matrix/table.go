package matrix

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// matrix is matrix.yaml.
type matrix struct {
	// Versions are the versions to run, the oldest first.
	Versions []string `json:"versions"`
	// Explanations explain why behaviors have different outcomes.
	Explanations map[string]string `json:"explanations"`
}

//go:embed matrix.yaml
var matrixFile []byte

func readMatrix() (matrix, error) {
	var read matrix
	if err := yaml.UnmarshalStrict(matrixFile, &read); err != nil {
		return matrix{}, fmt.Errorf("read matrix.yaml: %w", err)
	}
	return read, nil
}

// table contains the outcomes, with a column for each version.
type table struct {
	clusters []v1alpha1.Cluster
	rows     []row
	// problems are unexplained rows.
	problems []error
}

// row is one behavior with its outcome on each version.
type row struct {
	v1alpha1.Behavior
	outcomes []v1alpha1.Outcome
	// explanation explains the differences.
	explanation string
}

// tableOf creates the table of a report with one cluster for each version. It omits behaviors that were run on none.
func tableOf(joined v1alpha1.Report, matrix matrix) table {
	t := table{clusters: joined.Clusters}
	results := map[string]map[string]v1alpha1.Result{}
	for _, cluster := range joined.Clusters {
		for _, result := range cluster.Results {
			if results[result.ID] == nil {
				results[result.ID] = map[string]v1alpha1.Result{}
			}
			results[result.ID][cluster.Name] = result
		}
	}
	for _, id := range slices.Sorted(maps.Keys(results)) {
		var across []v1alpha1.Result
		for _, cluster := range joined.Clusters {
			across = append(across, results[id][cluster.Name])
		}
		if row := rowOf(across, matrix.Explanations[id]); !row.leftOut() {
			t.rows = append(t.rows, row)
			t.problems = append(t.problems, t.check(row)...)
		}
	}
	return t
}

// rowOf returns the row of one behavior, explained by matrix.yaml or by the skip reasons.
func rowOf(across []v1alpha1.Result, explanation string) row {
	row := row{explanation: explanation}
	var reasons []string
	var tested []v1alpha1.Outcome
	for _, result := range across {
		if result.ID != "" {
			row.Behavior = result.Behavior
		}
		row.outcomes = append(row.outcomes, result.Outcome)
		if result.Outcome != v1alpha1.Skipped {
			tested = append(tested, result.Outcome)
			continue
		}
		reason, _, _ := strings.Cut(report.ReasonOf(result), "; the version of the server is ")
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if row.explanation == "" && !differ(tested) {
		row.explanation = strings.Join(reasons, "; ")
	}
	return row
}

func differ(outcomes []v1alpha1.Outcome) bool { return len(slices.Compact(slices.Clone(outcomes))) > 1 }

func (r row) differs() bool { return differ(r.outcomes) }

// leftOut reports whether the behavior was run on no version.
func (r row) leftOut() bool { return !r.differs() && r.outcomes[0] == v1alpha1.Filtered }

// check returns what is wrong with a row: it is unexplained, passes nowhere, or was not tested.
func (t table) check(row row) []error {
	var problems []error
	for i, outcome := range row.outcomes {
		if outcome == v1alpha1.Errored || outcome == v1alpha1.Interrupted {
			problems = append(problems, fmt.Errorf("%s could not be tested on %s: run it again", row.ID, t.clusters[i].Name))
		}
	}
	switch {
	case row.differs() && row.explanation == "":
		problems = append(problems, fmt.Errorf("%s differs without an explanation: add a Since, or explain it in hack/survey/matrix/matrix.yaml", row.ID))
	case slices.Contains(row.outcomes, v1alpha1.Failed) && !slices.Contains(row.outcomes, v1alpha1.Passed):
		problems = append(problems, fmt.Errorf("%s passes on none of the versions", row.ID))
	}
	return problems
}

// checkUnused finds explanations of behaviors that do not differ.
func (t *table) checkUnused(matrix matrix) {
	for _, id := range slices.Sorted(maps.Keys(matrix.Explanations)) {
		if !slices.ContainsFunc(t.rows, func(r row) bool { return r.ID == id && r.differs() }) {
			t.problems = append(t.problems, fmt.Errorf("hack/survey/matrix/matrix.yaml explains %s, which does not differ", id))
		}
	}
}

// shown returns the rows that differ, or all.
func (t table) shown(all bool) []row {
	if all {
		return t.rows
	}
	return slices.DeleteFunc(slices.Clone(t.rows), func(r row) bool { return !r.differs() })
}

// words returns the outcomes for the table, with a dash for versions without the behavior.
func (r row) words() []string {
	var words []string
	for _, outcome := range r.outcomes {
		if outcome == "" {
			outcome = "–"
		}
		words = append(words, string(outcome))
	}
	return words
}

// print prints the table for a terminal.
func (t table) print(out io.Writer, all bool) error {
	writer := printers.GetNewTabWriter(out)
	heading := []string{"BEHAVIOR"}
	for _, cluster := range t.clusters {
		heading = append(heading, cluster.Name)
	}
	_, _ = fmt.Fprintln(writer, strings.Join(append(heading, "WHY"), "\t"))
	for _, row := range t.shown(all) {
		explanation := ""
		if row.differs() {
			explanation = row.explanation
		}
		_, _ = fmt.Fprintf(writer, "%s\t%s\t%s\n", row.ID, strings.Join(row.words(), "\t"), explanation)
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d of %d behaviors differ\n", len(t.shown(false)), len(t.rows))
	return err
}

// markdown returns docs/versions.md.
func (t table) markdown() string {
	var text strings.Builder
	text.WriteString("<!-- Generated by `make matrix`. Do not edit; explanations are in hack/survey/matrix/matrix.yaml. -->\n# Versions of Kubernetes\n\n")
	fmt.Fprintf(&text, "Results on the embedded Kubernetes without a node. %d of %d behaviors have the same result on all versions. The others are\n"+
		"listed below, with the reason.\n\n", len(t.rows)-len(t.shown(false)), len(t.rows))
	heading, ruler := "", "|---"
	for _, cluster := range t.clusters {
		heading += " | " + cluster.Name
		ruler += "|---"
	}
	fmt.Fprintf(&text, "| outcome%s |\n%s|\n", heading, ruler)
	for _, outcome := range v1alpha1.Outcomes {
		text.WriteString(t.countLine(outcome))
	}
	text.WriteString("\n## Differences\n\n")
	fmt.Fprintf(&text, "| behavior%s | why |\n%s|---|\n", heading, ruler)
	for _, row := range t.shown(false) {
		fmt.Fprintf(&text, "| %s: %s | %s | %s |\n", row.ID, lab.Cell(row.Statement), strings.Join(row.words(), " | "), lab.Cell(row.explanation))
	}
	return text.String()
}

// countLine returns the number of behaviors with the outcome on each version; empty when there are none.
func (t table) countLine(outcome v1alpha1.Outcome) string {
	line, total := "| "+string(outcome), 0
	for _, cluster := range t.clusters {
		count := cluster.Counts[outcome]
		line += fmt.Sprintf(" | %d", count)
		total += count
	}
	if total == 0 {
		return ""
	}
	return line + " |\n"
}
