package controller

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestRestart_InProcess(t *testing.T) {
	g := NewWithT(t)
	var starts atomic.Int32
	server, err := Listen()
	g.Expect(err).NotTo(HaveOccurred())
	server.Serve(func(ctx context.Context) error {
		starts.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}, func(error) {})
	g.Eventually(starts.Load).Should(BeEquivalentTo(1))

	g.Expect(Restart(t.Context(), nil, server.Controller(), "dc1", time.Minute)).To(Succeed())

	g.Eventually(starts.Load).Should(BeEquivalentTo(2))
	g.Expect(server.Close()).To(Succeed())
}

// scaled is a server with one Deployment. Its status follows its spec.
type scaled struct {
	deployment *client.Object
	// sizes are those to which it was scaled.
	sizes []float64
	// stuck keeps the status.
	stuck bool
}

func (s *scaled) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodPatch {
		patch := map[string]any{}
		_ = json.NewDecoder(request.Body).Decode(&patch)
		labels := s.deployment.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		for name, value := range patch["metadata"].(map[string]any)["labels"].(map[string]any) {
			delete(labels, name)
			if value != nil {
				labels[name] = value.(string)
			}
		}
		s.deployment.SetLabels(labels)
		if spec, ok := patch["spec"].(map[string]any); ok {
			size := spec["replicas"].(float64)
			s.sizes = append(s.sizes, size)
			s.deployment.Object["spec"] = map[string]any{"replicas": int64(size)}
			if !s.stuck {
				s.deployment.Object["status"] = map[string]any{"replicas": int64(size), "availableReplicas": int64(size)}
			}
		}
	}
	_ = json.NewEncoder(writer).Encode(s.deployment)
}

func TestRestart_Deployment(t *testing.T) {
	for name, test := range map[string]struct {
		stuck bool
		sizes []float64
		fails string
	}{
		"stops and starts":    {false, []float64{0, 2}, ""},
		"its pods do not end": {true, []float64{0, 2}, "still has 2 pods"},
	} {
		t.Run(name, func(t *testing.T) {
			g, which := NewWithT(t), Controller{Namespace: "widgets", Name: "operator"}
			s := &scaled{deployment: deployment(nil, int64(2), 2), stuck: test.stuck}
			s.deployment.Object["status"] = map[string]any{"replicas": int64(2), "availableReplicas": int64(2)}
			config, _ := apiservertest.Start(t, s.ServeHTTP)
			guard := client.NewGuard("dc1")
			guard.Except(Deployments("widgets"), "operator")
			connected, err := client.New(config, guard)
			g.Expect(err).NotTo(HaveOccurred())

			err = Restart(t.Context(), connected, which, "dc1", 300*time.Millisecond)

			g.Expect(s.sizes).To(Equal(test.sizes), "it is scaled back in any case")
			g.Expect(s.deployment.GetLabels()).To(BeEmpty())
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}
