package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// fold wraps the output of a run in a section that the log viewer of a CI system can fold.
type fold struct {
	*lines
	begin, end string
	// annotate formats a failure as an annotation of the CI system; nil when it has none.
	annotate func(result v1alpha1.Result) string
}

const foldTitle = "Behaviors"

// forCI wraps the output for GitHub Actions or GitLab, if the run is on one.
func forCI(l *lines) Progress {
	var f *fold
	switch {
	case l.volume == Quiet:
		return l
	case os.Getenv("GITHUB_ACTIONS") == "true":
		f = &fold{lines: l, begin: "::group::" + foldTitle, end: "::endgroup::", annotate: githubError}
	case os.Getenv("GITLAB_CI") == "true":
		section := func(what string) string {
			return fmt.Sprintf("\x1b[0Ksection_%s:%d:behaviors\r\x1b[0K", what, time.Now().Unix())
		}
		f = &fold{lines: l, begin: section("start") + foldTitle, end: section("end")}
	default:
		return l
	}
	f.write(f.begin)
	return f
}

// Ended also writes an annotation.
func (f *fold) Ended(cluster string, result v1alpha1.Result) {
	f.lines.Ended(cluster, result)
	if f.annotate != nil && (result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Outdated) {
		f.write(f.annotate(result))
	}
}

// Close ends the section.
func (f *fold) Close() error {
	f.write(f.end)
	return nil
}

func (f *fold) write(line string) { _, _ = io.WriteString(f.out, line+"\n") }

// githubError returns a workflow command, escaped as GitHub's toolkit does.
func githubError(result v1alpha1.Result) string {
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	return fmt.Sprintf("::error file=%s,line=%d,title=%s::%s", property.Replace(result.File), result.Line,
		property.Replace(result.ID), escape.Replace(report.Visible(report.FailureMessage(result))))
}
