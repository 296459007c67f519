package run

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
)

// document is a manifest with a status and with what a server writes.
func document(apiVersion, kind string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Ready"}}}
	made.SetAPIVersion(apiVersion)
	made.SetKind(kind)
	made.SetName("exported")
	made.SetNamespace("of-the-user")
	made.SetUID("1234")
	return made
}

// finderOf finds widgets and racks of example.com/v1.
func finderOf(fixtures []*unstructured.Unstructured, names ...string) *resourceFinder {
	finder := &resourceFinder{
		Resources: Resources{Names: names, Fixtures: fixtures}, mappings: map[string]*meta.RESTMapping{}, unknown: map[string]error{},
		flags: "--kubeconfig FILE",
	}
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	known := map[string]string{"widgets": "Widget", "widgets.example.com/v1": "Widget", "racks": "Rack"}
	for _, name := range names {
		if kind := known[name]; kind != "" {
			finder.mappings[name] = &meta.RESTMapping{Resource: version.WithResource(name), GroupVersionKind: version.WithKind(kind)}
		} else {
			finder.unknown[name] = errors.New("the server serves no such resource")
		}
	}
	return finder
}

func TestFixtures_Unused(t *testing.T) {
	widget, older, rack, secret := document("example.com/v1", "Widget"), document("example.com/v1beta1", "Widget"), document("example.com/v1", "Rack"), document("v1", "Secret")
	for _, test := range []struct {
		name      string
		resources []string
		fixtures  []*unstructured.Unstructured
		want      string
	}{
		{"none", []string{"widgets"}, nil, ""},
		{"of the resource, and what it needs", []string{"widgets"}, []*unstructured.Unstructured{secret, widget}, ""},
		{"of one of the resources", []string{"widgets", "racks"}, []*unstructured.Unstructured{rack}, ""},
		{"of something else", []string{"widgets"}, []*unstructured.Unstructured{secret, rack}, "no object of widgets among v1 Secret, example.com/v1 Rack; `runner fixture --kubeconfig FILE widgets` prints one"},
		{"of none of the resources", []string{"widgets", "racks"}, []*unstructured.Unstructured{secret}, "no object of a resource under test among v1 Secret"},
		{"of another version", []string{"widgets.example.com/v1"}, []*unstructured.Unstructured{older}, "no object of widgets.example.com/v1 among example.com/v1beta1 Widget"},
		{"two of the resource", []string{"widgets"}, []*unstructured.Unstructured{widget, older}, "2 objects of widgets; keep one of them"},
		{"of a resource that is not served", []string{"gadgets"}, []*unstructured.Unstructured{secret}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			err := finderOf(test.fixtures, test.resources...).checkFixtures()
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestCheckNames_Twice(t *testing.T) {
	g := NewWithT(t)
	g.Expect(finderOf(nil, "widgets", "racks", "gadgets").checkNames()).To(Succeed())
	err := finderOf(nil, "widgets", "racks", "widgets.example.com/v1").checkNames()
	g.Expect(err).To(MatchError("widgets and widgets.example.com/v1 are names of the same resource; keep one of them"))
}

func TestFixtureFlags(t *testing.T) {
	options := &Options{Namespace: "team-a", Settings: session.Settings{Additions: session.Additions{
		Labels: map[string]string{"team": "a b"}, Annotations: map[string]string{"note": "secret"}, PodOverlay: map[string]any{"spec": nil},
	}}}
	got := options.fixtureFlags(clusters.Cluster{Flags: "--context one"})
	NewWithT(t).Expect(got).To(Equal("--context one --namespace team-a --label 'team=a b' --annotation note=VALUE --pod-overlay FILE"))
}

func TestPrerequisites(t *testing.T) {
	g := NewWithT(t)
	finder := finderOf([]*unstructured.Unstructured{document("v1", "Secret"), document("example.com/v1", "Widget")}, "widgets")

	prerequisites := finder.prerequisites()

	g.Expect(prerequisites).To(HaveLen(1))
	g.Expect(prerequisites[0].Object).To(Equal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "exported"}}))
	g.Expect(finder.status(t.Context(), "widgets")).To(Equal(map[string]any{"phase": "Ready"}), "it is one that a widget may have")
}

func TestWithoutUntested(t *testing.T) {
	column := func(resource string, outcomes ...v1alpha1.Outcome) v1alpha1.Cluster {
		cluster := v1alpha1.Cluster{Name: "there " + resource, Resource: resource}
		for _, outcome := range outcomes {
			cluster.Results = append(cluster.Results, v1alpha1.Result{Outcome: outcome, Reason: "racks are cluster-scoped"})
		}
		return cluster
	}
	passed, skipped := column("widgets", v1alpha1.Passed, v1alpha1.Skipped), column("racks", v1alpha1.Skipped, v1alpha1.Filtered)
	leaving, broken := skipped, skipped
	leaving.LeftBehind, broken.Problem = "a rack", "unreachable"
	named := column("nodes", v1alpha1.Skipped)
	for _, test := range []struct {
		name    string
		columns []v1alpha1.Cluster
		kept    []v1alpha1.Cluster
	}{
		{"one of two", []v1alpha1.Cluster{passed, skipped}, []v1alpha1.Cluster{passed}},
		{"one that was named", []v1alpha1.Cluster{passed, named}, []v1alpha1.Cluster{passed, named}},
		{"one that left something behind", []v1alpha1.Cluster{passed, leaving}, []v1alpha1.Cluster{passed, leaving}},
		{"one with a problem", []v1alpha1.Cluster{passed, broken}, []v1alpha1.Cluster{passed, broken}},
		{"one that failed", []v1alpha1.Cluster{passed, column("racks", v1alpha1.Failed)}, []v1alpha1.Cluster{passed, column("racks", v1alpha1.Failed)}},
		{"all", []v1alpha1.Cluster{skipped}, []v1alpha1.Cluster{skipped}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			run := &conductor{Options: &Options{Resources: Resources{All: true, Names: []string{"nodes"}}}}
			whole := run.withoutUntested(v1alpha1.Report{Clusters: test.columns})
			g.Expect(whole.Clusters).To(Equal(test.kept))
			if len(test.kept) < len(test.columns) {
				g.Expect(whole.LeftOut).To(Equal([]v1alpha1.LeftOut{
					{Cluster: "there", Resource: "racks", Reason: "all selected behaviors were skipped: racks are cluster-scoped"},
				}))
			} else {
				g.Expect(whole.LeftOut).To(BeEmpty())
			}
			run.Resources.All = false
			g.Expect(run.withoutUntested(v1alpha1.Report{Clusters: test.columns}).Clusters).To(Equal(test.columns), "what was named is tested")
		})
	}
}

func TestCleanupCommand(t *testing.T) {
	there, here := clusters.Cluster{Flags: "--kubeconfig f --context there"}, clusters.Cluster{}
	creating := func(context.Context, plan.Plan) (clusters.Cluster, func(), error) {
		return clusters.Cluster{}, nil, nil
	}
	for _, test := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"one cluster", func(o *Options) { o.clusters = []clusters.Cluster{there} }, "runner cleanup --run dc1 --kubeconfig f --context there"},
		{"a namespace", func(o *Options) { o.clusters, o.Namespace = []clusters.Cluster{there}, "mine" }, "runner cleanup --run dc1 --kubeconfig f --context there --namespace mine"},
		{"two clusters", func(o *Options) { o.clusters = []clusters.Cluster{there, here} }, "runner cleanup --run dc1 --kubeconfig f --context there\nrunner cleanup --run dc1"},
		{"a created cluster", func(o *Options) { o.CreateCluster = creating }, "runner cleanup"},
		{"nothing created", func(o *Options) { o.clusters, o.Settings.NoCreate = []clusters.Cluster{there}, true }, ""},
		{"no cluster yet", func(*Options) {}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := Options{id: "dc1"}
			test.change(&options)
			NewWithT(t).Expect(options.CleanupCommands()).To(Equal(test.want))
		})
	}
}
