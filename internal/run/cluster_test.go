package run

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/provider/existing"
)

func TestUnknown_Reasons(t *testing.T) {
	defect := errors.New("a defect")
	for _, test := range []struct {
		name, problem string
		crashed       error
		filtered      string
		outcome       v1alpha1.Outcome
		reason        string
	}{
		{"filtered", "", nil, "it is slow", v1alpha1.Filtered, "it is slow"},
		{"filtered, on a cluster with a problem", "unreachable", nil, "it is slow", v1alpha1.Filtered, "it is slow"},
		{"filtered, by a runner with a defect", "", defect, "it is slow", v1alpha1.Filtered, "it is slow"},
		{"the cluster could not be tested", "unreachable", defect, "", v1alpha1.Errored, "unreachable"},
		{"the runner has a defect", "", defect, "", v1alpha1.Errored, "a defect"},
		{"the run ended before", "", nil, "", v1alpha1.Interrupted, "the run was interrupted before it started"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := clusterRun{report: &v1alpha1.Cluster{Problem: test.problem}}
			outcome, reason := cluster.unknown(test.filtered, test.crashed)
			g.Expect(outcome).To(Equal(test.outcome))
			g.Expect(reason).To(Equal(test.reason))
		})
	}
}

func TestComplete_KnownResults(t *testing.T) {
	g := NewWithT(t)
	known := v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: "sample.two"}, Outcome: v1alpha1.Passed}
	cluster := clusterRun{report: &v1alpha1.Cluster{}, results: map[string]v1alpha1.Result{"sample.two": known}}
	cluster.complete(plan.Plan{Catalog: []plan.Behavior{
		{Behavior: v1alpha1.Behavior{ID: "sample.one"}}, {Behavior: v1alpha1.Behavior{ID: "sample.two"}},
	}}, nil)
	g.Expect(cluster.report.Results).To(HaveLen(2), "every behavior of the catalog is in the report")
	g.Expect(cluster.report.Results[0].Outcome).To(Equal(v1alpha1.Interrupted))
	g.Expect(cluster.report.Results[1]).To(Equal(known))
}

func TestRun_UnreachableCluster(t *testing.T) {
	g := NewWithT(t)
	cluster := newClusterRuns(clusters.Cluster{Provider: nowhere(t)}, Resources{})[0]
	g.Expect(cluster.setUp(t.Context(), &Options{id: "dctest"})).To(MatchError(And(
		ContainSubstring(environment.ErrUnreachable.Error()), ContainSubstring("127.0.0.1:1"))))
	g.Expect(cluster.environment).To(BeNil())
}

// made is a provider with all properties of a provider.
type made struct{ provider.Cluster }

func (made) Features() provider.Features {
	return provider.Features{
		Supported:   []v1alpha1.Feature{v1alpha1.GC},
		Unsupported: map[v1alpha1.Feature]string{v1alpha1.Node: "made without"},
		Components:  "/socket",
		Ephemeral:   true,
	}
}

func TestEnvironmentOptions_Provider(t *testing.T) {
	g := NewWithT(t)
	cluster := newClusterRuns(clusters.Cluster{Provider: made{}}, Resources{})[0]
	cluster.environment = &environment.Environment{}
	options := cluster.environmentOptions(&Options{})
	g.Expect(options.Supported).To(ConsistOf(v1alpha1.GC, v1alpha1.OwnCluster))
	g.Expect(options.Unsupported).To(HaveKeyWithValue(v1alpha1.Node, "made without"))
	g.Expect(options.Components).To(Equal("/socket"))
	g.Expect(cluster.needsTearDown()).To(BeFalse(), "it goes, with all that is on it")
}

func TestEnvironmentOptions_ExistingCluster(t *testing.T) {
	g := NewWithT(t)
	cluster := newClusterRuns(clusters.Cluster{Provider: nowhere(t)}, Resources{})[0]
	g.Expect(cluster.needsTearDown()).To(BeFalse(), "nothing was made")
	cluster.environment = &environment.Environment{}
	g.Expect(cluster.needsTearDown()).To(BeTrue())
	options := cluster.environmentOptions(&Options{Pool: workers.Pool{Processes: 1}})
	g.Expect(options.ExtraWorkers(time.Second)).To(BeZero(), "as the user wants it")
	options.ExtraWorkers = nil
	g.Expect(options).To(Equal(environment.Options{Workers: 1}))
}

// nowhere returns a cluster at an address that does not respond.
func nowhere(t *testing.T) provider.Cluster {
	t.Helper()
	server := &clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}}
	cluster, err := existing.New(clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), server))
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}
