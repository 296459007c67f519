package aggregated

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// bin is the output directory of `make build` and `make bin/sample-apiserver`.
const bin = "../../../bin"

func TestAggregatedAPIServer(t *testing.T) {
	clustertest.Long(t)
	g := NewWithT(t)
	binary := filepath.Join(bin, "sample-apiserver")
	if _, err := os.Stat(binary); err != nil {
		t.Skipf("it was not built (%v): make bin/sample-apiserver does it", err)
	}
	cluster := clustertest.Cluster(t, bin)
	binaries, err := binaries.Find(filepath.Join(bin, "kubernetes"), "")
	g.Expect(err).NotTo(HaveOccurred())
	server, err := Start(t.Context(), cluster, binary, filepath.Join(binaries, "etcd"))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(server.Stop()).To(Succeed()) })
	t.Run("with objects of others", func(t *testing.T) { spares(t, cluster) })
	t.Run("by an exploration", func(t *testing.T) { explored(t, cluster) })

	tested, err := runnertest.Run(t.Context(), filepath.Join(bin, "runner"), t.TempDir(),
		"--kubeconfig", cluster.Kubeconfig(), "--resource", strings.Join(Resources, ","), "--wait-timeout", "2m")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tested.Clusters).To(HaveLen(len(Resources)))
	for _, column := range tested.Clusters {
		g.Expect(column.Problem).To(BeEmpty(), column.Resource)
		for _, result := range column.Results {
			if why := report.ReasonOf(result); !isExpected(result.Outcome, why) {
				t.Errorf("%s %s of %s: %s", result.ID, result.Outcome, column.Resource, why)
			}
		}
		g.Expect(column.Counts[v1alpha1.Passed]).To(BeNumerically(">", 80), column.Resource)
	}
}

// explored checks that an exploration of each resource finds nothing.
func explored(t *testing.T, cluster *embedded.Cluster) {
	g := NewWithT(t)
	found, err := runnertest.Run(t.Context(), filepath.Join(bin, "runner"), t.TempDir(), "explore",
		"--kubeconfig", cluster.Kubeconfig(), "--resource", strings.Join(Resources, ","), "--for", "30s")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Clusters).To(HaveLen(len(Resources)))
	for _, column := range found.Clusters {
		g.Expect(column.Problem).To(BeEmpty(), column.Resource)
		g.Expect(column.Counts[v1alpha1.Failed]).To(BeZero(), column.Resource)
		g.Expect(column.Counts[v1alpha1.Passed]).To(BeNumerically(">", 10), column.Resource)
	}
}

// spares checks that no deletecollection is sent to a collection with objects of others, because the server may ignore selectors. In
// namespaces of the run it is sent.
func spares(t *testing.T, cluster *embedded.Cluster) {
	g := NewWithT(t)
	objects, err := dynamic.NewForConfig(cluster.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	fischers := objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "fischers"})
	others, err := fischers.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1alpha1", "kind": "Fischer", "metadata": map[string]any{"name": "of-others"},
	}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		g.Expect(fischers.Delete(context.Background(), others.GetName(), metav1.DeleteOptions{})).To(Succeed())
	})
	const selecting = "cascade.collection.selector"

	tested, err := runnertest.Run(t.Context(), filepath.Join(bin, "runner"), t.TempDir(),
		"--kubeconfig", cluster.Kubeconfig(), "--resource", strings.Join(Resources, ","), "--wait-timeout", "2m", "--label-filter",
		"finalizers.changes-before-deletion || "+selecting)

	g.Expect(err).NotTo(HaveOccurred())
	for _, column := range tested.Clusters {
		at := slices.IndexFunc(column.Results, func(result v1alpha1.Result) bool { return result.ID == selecting })
		g.Expect(at).To(BeNumerically(">=", 0))
		switch result := column.Results[at]; column.Resource {
		case "fischers." + group: // cluster-scoped
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped))
			g.Expect(report.ReasonOf(result)).To(ContainSubstring("the API server of service " + namespace + "/" + service))
		default:
			g.Expect(result.Outcome).To(Equal(v1alpha1.Passed))
		}
	}
}

// lacking are parts of skip reasons for features that the server, which consists of k8s.io/apiserver, lacks, and for cluster-scoped
// resources. The admission plugin is part of k8s.io/kubernetes (plugin/pkg/admission/gc); the strategies and storages of both kinds have no
// status (sample-apiserver's pkg/apiserver/apiserver.go).
var lacking = []string{"OwnerReferencesPermissionEnforcement is off", "CBORServingAndStorage is off", "has no status subresource", "are cluster-scoped"}

// isExpected reports whether a behavior passed, or requires a feature that the server lacks.
func isExpected(outcome v1alpha1.Outcome, reason string) bool {
	switch outcome {
	case v1alpha1.Passed, v1alpha1.Filtered:
		return true
	case v1alpha1.Skipped:
		return slices.ContainsFunc(lacking, func(part string) bool { return strings.Contains(reason, part) })
	}
	return false
}
