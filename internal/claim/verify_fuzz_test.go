package claim

import (
	"strings"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// FuzzVerify verifies claims of arbitrary reports: each problem is one line, and nothing panics.
func FuzzVerify(f *testing.F) {
	f.Add(realReport)
	f.Fuzz(func(t *testing.T, content []byte) {
		evidence, err := seal(content)
		if err != nil {
			t.Fatal(err)
		}
		profiles := []v1alpha1.ProfileResult{{Profile: v1alpha1.ProfileAPI}, {Profile: v1alpha1.ProfileNode}}
		claim := v1alpha1.ConformanceReport{
			APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ClaimKind, Implementation: example, Profiles: profiles, Evidence: evidence,
		}
		for _, problem := range problemsOf(t, encoded(t, claim), nil) {
			if strings.ContainsAny(problem.String(), "\n\r\x1b") {
				t.Errorf("want one line, got %q", problem)
			}
		}
		if made, _, err := Make(Source{Report: content, Implementation: example}); err == nil {
			_ = problemsOf(t, encoded(t, made), nil)
		}
	})
}
