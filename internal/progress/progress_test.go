package progress_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// shown returns the output of a run of two clusters, all of whose texts are equal.
func shown(t *testing.T, text string, variable string) string {
	t.Helper()
	t.Setenv("GITHUB_ACTIONS", "")
	t.Setenv("GITLAB_CI", "")
	t.Setenv(variable, "true")
	whole, out := reporttest.WithText(text), bytes.Buffer{}
	p := progress.New(&out, 2, 1, progress.Verbose)
	p.SetUp(whole.Clusters[0], 1)
	whole.Clusters[0].Problem = ""
	p.SetUp(whole.Clusters[0], 1)
	for _, result := range whole.Clusters[0].Results {
		result.Outcome = v1alpha1.Failed
		p.Began(text, result.ID)
		p.Retrying(text, result)
		p.Ended(text, result)
	}
	p.TearingDown(text)
	NewWithT(t).Expect(p.Close()).To(Succeed())
	return out.String()
}

func TestNew_HostileText(t *testing.T) {
	acts := regexp.MustCompile("(?m)^[\\pZ\\s]*::|##\\w*\\[|[\x1b\x07\u009b\u202e\r]")
	for _, text := range reporttest.Hostile {
		own := regexp.MustCompile(`\A::group::Behaviors\n|(?m)^::error file=[^:\n]*,line=\d+,title=[\w.]+::.*\n|::endgroup::\n\z`)
		printed := shown(t, text, "GITHUB_ACTIONS")
		rest := own.ReplaceAllString(printed, "")
		NewWithT(t).Expect(acts.FindString(rest)).To(BeEmpty(), "%q in %q", text, printed)
		NewWithT(t).Expect(strings.Count(printed, "\n::error file=")).To(Equal(len(reporttest.Sample().Clusters[0].Results)))

		section := regexp.MustCompile("\x1b\\[0Ksection_(start|end):\\d+:behaviors\r\x1b\\[0K(Behaviors)?\n")
		printed = shown(t, text, "GITLAB_CI")
		NewWithT(t).Expect(section.FindAllString(printed, -1)).To(HaveLen(2))
		NewWithT(t).Expect(acts.FindString(section.ReplaceAllString(printed, ""))).To(BeEmpty(), "%q in %q", text, printed)
	}
}
