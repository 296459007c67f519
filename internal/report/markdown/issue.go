package markdown

import (
	"fmt"
	"io"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// WriteIssue writes a draft of an issue about a failure, with the headings that issues of Kubernetes have: what happened, what was expected, how to
// reproduce it, and the versions. The command reproduces the failure.
func WriteIssue(w io.Writer, r v1alpha1.Report, cluster v1alpha1.Cluster, result v1alpha1.Result, command string) error {
	cluster, result = visible.Value(cluster), visible.Value(result)
	expected := prose(result.Statement, messageInSummary) + "\n"
	if result.Promise != "" {
		expected += "\n> " + prose(result.Promise, messageInSummary) + "\n"
	}
	if result.Source != "" {
		expected += "\nSource: " + code(result.Source) + "\n"
	}
	sections := []string{
		"# " + prose(result.ID, inlineLimit) + ": " + prose(result.Statement, inlineLimit) + "\n",
		"## What happened?\n\n" + fenced(strings.TrimSpace(report.Message(result)), messageInSummary) + "\n" +
			fenced(report.FailureDetails(result), bytesOfSection),
		"## What did you expect to happen?\n\n" + expected,
		"## How can we reproduce it?\n\n" + fenced(command, inlineLimit) + "\nThe file has the operations, and the recorded history.\n",
		fmt.Sprintf("## Versions\n\nKubernetes %s, runner %s\n", code(cluster.ServerVersion), code(r.Runner)),
	}
	if _, err := io.WriteString(w, strings.Join(sections, "\n")); err != nil {
		return fmt.Errorf("write the draft of an issue: %w", err)
	}
	return nil
}
