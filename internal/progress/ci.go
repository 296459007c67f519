package progress

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// fold wraps the output of a run in a section that the log viewer of a CI system can fold.
type fold struct {
	*lines
	begin, end visible.Own
	// annotate returns the command that annotates a failure; nil when the CI system has none.
	annotate func(result v1alpha1.Result) visible.Own
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
		section := func(what string) visible.Own {
			return visible.Own(fmt.Sprintf("\x1b[0Ksection_%s:%d:behaviors\r\x1b[0K", what, time.Now().Unix()))
		}
		f = &fold{lines: l, begin: section("start") + foldTitle, end: section("end")}
	default:
		return l
	}
	_ = f.out.Command(f.begin, "")
	return f
}

// Ended also writes an annotation.
func (f *fold) Ended(cluster string, result v1alpha1.Result) {
	f.lines.Ended(cluster, result)
	if f.annotate != nil && (result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Outdated) {
		_ = f.out.Command(f.annotate(result), report.Message(result))
	}
}

// Close ends the section.
func (f *fold) Close() error {
	return f.out.Command(f.end, "")
}

// githubError returns a workflow command, whose properties are escaped as GitHub's toolkit does.
func githubError(result v1alpha1.Result) visible.Own {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	return visible.Own(fmt.Sprintf("::error file=%s,line=%d,title=%s::", property.Replace(result.File), result.Line, property.Replace(result.ID)))
}
