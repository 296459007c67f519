package session

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestConfig_SkipReason(t *testing.T) {
	unsupported := map[v1alpha1.Feature]string{v1alpha1.GC: "the garbage collector did not act", v1alpha1.Node: "no node is ready"}
	for _, test := range []struct {
		name, server, since string
		features            []v1alpha1.Feature
		want                string
	}{
		{"nothing is missing", "v1.36.3", "", []v1alpha1.Feature{}, ""},
		{"one of two features is missing", "v1.36.3", "", []v1alpha1.Feature{v1alpha1.GC}, "the garbage collector did not act"},
		{"the first that is missing is named", "v1.36.3", "", []v1alpha1.Feature{v1alpha1.GC, v1alpha1.Node}, "the garbage collector did not act"},
		{"a feature comes before the version", "v1.26.0", "1.30", []v1alpha1.Feature{v1alpha1.Node}, "no node is ready"},
		{"newer than since", "v1.36.3", "1.30", nil, ""},
		{"exactly since", "v1.30.0", "1.30", nil, ""},
		{"a later patch of since", "v1.30.14", "1.30", nil, ""},
		{"a pre-release of since", "v1.30.0-alpha.1", "1.30", nil, ""},
		{"a vendor's ending, new enough", "v1.29.6-eks-123", "1.29", nil, ""},
		{"a vendor's ending, too old", "v1.29.6-eks-123", "1.30", nil, "requires Kubernetes 1.30 or newer; the version of the server is v1.29.6-eks-123"},
		{"build metadata", "v1.33.1+k3s1", "1.33", nil, ""},
		{"too old", "v1.26.0", "1.30", nil, "requires Kubernetes 1.30 or newer; the version of the server is v1.26.0"},
		{"minors are numbers, not text", "v1.9.0", "1.27", nil, "requires Kubernetes 1.27 or newer; the version of the server is v1.9.0"},
		{"an old server without since", "v1.26.0", "", nil, ""},
		{"a version that cannot be read", "a fork", "1.30", nil, `requires Kubernetes 1.30 or newer; the version of the server, "a fork", is not valid`},
		{"no version, and none needed", "", "", nil, ""},
		{"kubectl's version counts, not the server's", "v1.26.0", "1.30", []v1alpha1.Feature{v1alpha1.Kubectl}, ""},
		{"kubectl is too old", "v1.36.3", "1.33", []v1alpha1.Feature{v1alpha1.Kubectl}, "requires kubectl 1.33 or newer; the version of the kubectl is v1.32.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := Config{ServerVersion: test.server, Unsupported: unsupported}
			config.Kubectl.Version = "v1.32.1"
			if got := config.SkipReason(v1alpha1.Behavior{Features: test.features, Since: test.since}); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestConfig_Labels(t *testing.T) {
	NewWithT(t).Expect(Config{Run: "dcabc", Worker: 2}.Labels()).To(Equal(labels.Set{client.RunLabel: "dcabc", client.WorkerLabel: "2"}))
}

func TestConfig_RoundTrip(t *testing.T) {
	g := NewWithT(t)
	sent := Config{
		Settings: Settings{Settle: time.Second, WaitTimeout: time.Minute, WebhookHost: "192.0.2.7", Additions: Additions{ImageRegistry: "mirror.example"},
			Kubectl: Kubectl{Path: "/bin/kubectl", Version: "v1.36.3"}},
		Run: "dcabc", Worker: 2, Namespace: "dcabc-2", ServerVersion: "v1.36.3", Components: "/run/components", SpareNode: "node-2",
		Unsupported: map[v1alpha1.Feature]string{v1alpha1.Node: "no node is ready"},
	}
	encoded, err := json.Marshal(sent)
	g.Expect(err).NotTo(HaveOccurred())
	received := Config{}
	g.Expect(json.Unmarshal(encoded, &received)).To(Succeed())
	g.Expect(received).To(Equal(sent))
}

func TestSession_Missing(t *testing.T) {
	g := NewWithT(t)
	_, err := Of(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("run the suites with bin/runner")))

	session := &Session{}
	g.Expect(Of(context.WithValue(t.Context(), contextKey{}, session))).To(BeIdenticalTo(session))
}

func TestTimeoutFor_Node(t *testing.T) {
	g, config := NewWithT(t), Config{}
	onNode := v1alpha1.Behavior{Features: []v1alpha1.Feature{v1alpha1.Node}}
	g.Expect(config.TimeoutFor(v1alpha1.Behavior{})).To(Equal(30 * time.Second))
	g.Expect(config.TimeoutFor(onNode)).To(Equal(time.Minute))
	ofNamespaces := v1alpha1.Behavior{Features: []v1alpha1.Feature{v1alpha1.KCM, v1alpha1.Admin}}
	g.Expect(config.TimeoutFor(ofNamespaces)).To(Equal(time.Minute))
	config.WaitTimeout = 30 * time.Second
	g.Expect(config.TimeoutFor(ofNamespaces)).To(Equal(30*time.Second), "as the user wants it")
	config.WaitTimeout = time.Hour
	g.Expect(config.TimeoutFor(onNode)).To(Equal(time.Hour))
}

func TestSettings_Release(t *testing.T) {
	g, settings := NewWithT(t), Settings{Release: 5 * time.Second}
	g.Expect(settings.Timeout()).To(Equal(80 * time.Second))
	settings.WaitTimeout = 30 * time.Second
	g.Expect(settings.Timeout()).To(Equal(30*time.Second), "as the user wants it")
}

func TestSettings_Slowness(t *testing.T) {
	g, config := NewWithT(t), Config{}
	g.Expect(config.AtLeast(10 * time.Second)).To(Equal(30 * time.Second))
	g.Expect(config.AtLeast(90 * time.Second)).To(Equal(90 * time.Second))
	config.Slowness = 4
	g.Expect(config.AtLeast(10 * time.Second)).To(Equal(2 * time.Minute))
	g.Expect(config.AtLeast(90 * time.Second)).To(Equal(6 * time.Minute))
}

func TestRecorder_TraceID(t *testing.T) {
	g := NewWithT(t)
	recorder, err := Config{Settings: Settings{TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"}}.recorder()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(recorder.Trace.String()).To(Equal("4bf92f3577b34da6a3ce929d0e0e4736"))
	_, err = Config{Settings: Settings{TraceID: "tomorrow"}}.recorder()
	g.Expect(err).To(MatchError(HavePrefix("trace the requests of specs: ")))
}
