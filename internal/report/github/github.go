// Package github passes the result of a run to GitHub Actions: the summary to the page of the job, and the verdict and counts to later
// steps.
package github

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/markdown"
)

// The environment variables with the files that GitHub Actions reads after a step.
const (
	summaryVariable = "GITHUB_STEP_SUMMARY"
	outputVariable  = "GITHUB_OUTPUT"
)

// Publish publishes a report if the run is a step of GitHub Actions.
func Publish(r v1alpha1.Report) error {
	if os.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	var summary bytes.Buffer
	if err := markdown.Write(&summary, r); err != nil {
		return err
	}
	verdict, _ := r.Verdict(v1alpha1.SubjectCluster)
	kubectl, _ := r.Verdict(v1alpha1.SubjectKubectl) // empty when it was not tested
	counts := report.Tally(r)
	outputs := fmt.Sprintf("verdict=%s\nscope=%s\nkubectl=%s\npassed=%d\nfailed=%d\noutdated-known=%d\nknown=%d\ndeviated=%d\nerrored=%d\ninterrupted=%d\nskipped=%d\nnot-selected=%d\n",
		verdict.Conclusion, verdict.Scope, kubectl.Conclusion, counts[v1alpha1.Passed], counts[v1alpha1.Failed], counts[v1alpha1.Outdated], counts[v1alpha1.Known],
		counts[v1alpha1.Deviated], counts[v1alpha1.Errored], counts[v1alpha1.Interrupted], counts[v1alpha1.Skipped], counts[v1alpha1.Filtered])
	return errors.Join(add(summaryVariable, summary.String()), add(outputVariable, outputs))
}

// add appends a text to the file in an environment variable, if it is set.
func add(variable, text string) error {
	path := os.Getenv(variable)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write to $%s: %w", variable, err)
	}
	if _, err = file.WriteString(text); err != nil {
		err = fmt.Errorf("write to $%s: %w", variable, err)
	}
	return errors.Join(err, file.Close())
}
