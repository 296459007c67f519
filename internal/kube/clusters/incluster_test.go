package clusters_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestInCluster_NoPod(t *testing.T) {
	alone(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"--in-cluster"}, "--in-cluster: this process does not run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set); use --kubeconfig FILE"},
		{[]string{"--in-cluster", "--kubeconfig", "file"}, "--in-cluster and --kubeconfig are mutually exclusive"},
		{[]string{"--in-cluster", "--all-contexts"}, "--in-cluster and --all-contexts are mutually exclusive"},
	} {
		_, err := named(t, test.arguments...)
		NewWithT(t).Expect(err).To(MatchError(test.want))
	}
}

func TestClusters_InPod(t *testing.T) {
	alone(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err := named(t)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no cluster specified")))
}
