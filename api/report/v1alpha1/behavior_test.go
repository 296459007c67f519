package v1alpha1_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestSourceURL(t *testing.T) {
	const conformance = "https://github.com/kubernetes/kubernetes/blob/master/test/conformance/testdata/conformance.yaml"
	for source, want := range map[string]string{
		"concepts/architecture/garbage-collection":   "https://kubernetes.io/docs/concepts/architecture/garbage-collection/",
		"reference/kubectl/generated/kubectl_delete": "https://kubernetes.io/docs/reference/kubectl/generated/kubectl_delete/",
		"KEP-592":          "https://www.kubernetes.dev/resources/keps/592/",
		"kubernetes#98040": "https://github.com/kubernetes/kubernetes/issues/98040",
		"conformance: Garbage Collector, dependency cycle":    conformance,
		"pkg/controller/garbagecollector/garbagecollector.go": "",
		"k8s.io/kubectl/pkg/drain":                            "",
		"test/integration/garbagecollector: TestCRDDeletion":  "",
		"": "",
	} {
		if got := (v1alpha1.Behavior{Source: source}).SourceURL(); got != want {
			t.Errorf("the page of %q is %q, not %q", source, got, want)
		}
	}
}
