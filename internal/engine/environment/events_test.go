package environment

import (
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
)

// Events of a server, on two pages: the names of the first and the last are those of a run, and the other one only mentions the run.
var eventPages = map[string]string{
	"": `{"kind":"EventList","apiVersion":"v1","metadata":{"continue":"more"},"items":[
		{"metadata":{"namespace":"default","name":"node-dcx7k2p9q4-ab.17f"}},{"metadata":{"namespace":"default","name":"copied.17f"},"involvedObject":{"kind":"Node","name":"node-dcx7k2p9q4-ab"}}]}`,
	"more": `{"kind":"EventList","apiVersion":"v1","items":[{"metadata":{"namespace":"default","name":"things.dcx7k2p9q4.17f"}}]}`,
}

func TestEvents(t *testing.T) {
	serving := func(g Gomega, deleted *[]string) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			writer.Header().Set("Content-Type", "application/json")
			answer := `{"kind":"List","apiVersion":"v1","gitVersion":"v1.36.3","items":[]}`
			switch {
			case request.Method == http.MethodPost:
				writer.WriteHeader(http.StatusForbidden)
			case request.Method == http.MethodDelete:
				*deleted = append(*deleted, request.URL.Path)
			case request.URL.Path == "/api/v1/namespaces/default/events" && len(*deleted) < 2:
				g.Expect(request.URL.Query().Get("fieldSelector")).To(Equal("involvedObject.namespace="), "only about cluster-scoped objects")
				answer = eventPages[request.URL.Query().Get("continue")]
			}
			_, _ = io.WriteString(writer, answer)
		}
	}

	t.Run("cleanup", func(t *testing.T) {
		g := NewWithT(t)
		config, _ := apiservertest.Start(t, serving(g, new([]string)))
		found, err := FindLeftovers(t.Context(), config, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Leftovers).To(ConsistOf(And(HaveField("Run", "dcx7k2p9q4"),
			HaveField("Objects", ConsistOf("Event default/node-dcx7k2p9q4-ab.17f", "Event default/things.dcx7k2p9q4.17f")))))
	})
	t.Run("teardown", func(t *testing.T) {
		g := NewWithT(t)
		var deleted []string
		connected, _ := asking(t, serving(g, &deleted))
		cleanup{client: connected, run: "dcx7k2p9q4"}.start(time.Now()).clearEvents(t.Context())
		g.Expect(deleted).To(Equal([]string{
			"/api/v1/namespaces/default/events/node-dcx7k2p9q4-ab.17f", "/api/v1/namespaces/default/events/things.dcx7k2p9q4.17f",
		}))
	})
}
