package journal_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

const (
	selector  = client.RunLabel + "=dcb2c4d5f6"
	configMap = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","resourceVersion":"8"}}}`
	tooOld    = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired","message":"too old resource version"}}`
)

// configMapsIn returns the collection of a namespace's ConfigMaps.
func configMapsIn(namespace string) client.Collection {
	return client.Collection{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespace: namespace,
	}
}

// watching returns Watches of a server that sends one event to each watch and leaves it open. It also returns the number of requests and
// the paths of ended watches.
func watching(t *testing.T, event string) (watches *journal.Watches, requests func() int32, ended <-chan string) {
	t.Helper()
	g := NewWithT(t)
	paths := make(chan string, 10)
	config, count := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		if query.Get("labelSelector") != selector {
			t.Errorf("want only what %s selects, got %s", selector, request.URL)
		}
		if query.Get("watch") == "" {
			_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":[]}`)
			return
		}
		if query.Get("resourceVersion") != "7" {
			t.Errorf("want a watch from 7 on, got %s", request.URL)
		}
		_, _ = fmt.Fprintln(writer, event)
		_ = http.NewResponseController(writer).Flush()
		<-request.Context().Done()
		paths <- request.URL.Path
	})
	connected, err := client.New(config, client.NewGuard("dcb2c4d5f6"))
	g.Expect(err).NotTo(HaveOccurred())
	watches = journal.NewWatches(connected, selector)
	t.Cleanup(watches.Stop)
	return watches, count.Load, paths
}

func TestWatches(t *testing.T) {
	g := NewWithT(t)
	watches, requests, _ := watching(t, configMap)

	g.Expect(watches.Cover(t.Context(), configMapsIn("dcb2c4d5f6-1")).Err).NotTo(HaveOccurred())
	var events []journal.Event
	g.Eventually(func() (_ []journal.Event, err error) {
		events, err = watches.Journal.Read(nil)
		return events, err
	}).Should(HaveLen(1))
	g.Expect(events[0].Type).To(Equal(watch.Added))
	g.Expect(events[0].Object.GetName()).To(Equal("c"))

	g.Expect(watches.Cover(t.Context(), configMapsIn("dcb2c4d5f6-1")).Err).NotTo(HaveOccurred())
	g.Expect(requests()).To(BeEquivalentTo(2), "a list and a watch: a covered collection is not requested again")
}

func TestWatches_NamespaceEnds(t *testing.T) {
	g := NewWithT(t)
	watches, requests, ended := watching(t, configMap)
	for _, namespace := range []string{"a", "b"} {
		g.Expect(watches.Cover(t.Context(), configMapsIn(namespace)).Err).NotTo(HaveOccurred())
	}
	g.Eventually(func() ([]journal.Event, error) { return watches.Journal.Read(nil) }).Should(HaveLen(2))

	watches.Drop(func(collection client.Collection) bool { return collection.Namespace == "a" })

	g.Eventually(ended).Should(Receive(Equal("/api/v1/namespaces/a/configmaps")))
	g.Expect(ended).NotTo(Receive(), "the other goes on")
	_, err := watches.Journal.Read(nil)
	g.Expect(err).NotTo(HaveOccurred(), "nothing was missed")
	g.Expect(watches.Cover(t.Context(), configMapsIn("a")).Err).NotTo(HaveOccurred())
	g.Eventually(requests).Should(BeEquivalentTo(6), "it is watched again")
}

func TestWatches_Interruption(t *testing.T) {
	g := NewWithT(t)
	watches, requests, _ := watching(t, tooOld)
	failure := func() error {
		_, err := watches.Journal.Read(nil)
		return err
	}
	g.Expect(watches.Cover(t.Context(), configMapsIn("dcb2c4d5f6-1")).Err).NotTo(HaveOccurred())
	g.Eventually(failure).Should(MatchError("the watch on configmaps was lost: too old resource version"))
	g.Consistently(requests, "100ms").Should(BeEquivalentTo(2))

	watches.Journal.Forget()
	g.Expect(failure()).To(Succeed())
	g.Expect(watches.Cover(t.Context(), configMapsIn("dcb2c4d5f6-1")).Err).NotTo(HaveOccurred())
	g.Eventually(requests).Should(BeEquivalentTo(4), "a list and a watch: it starts again")
}

func TestWatches_Unwatchable(t *testing.T) {
	g := NewWithT(t)
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusForbidden) })
	connected, err := client.New(config, client.NewGuard("dcb2c4d5f6"))
	g.Expect(err).NotTo(HaveOccurred())
	watches := journal.NewWatches(connected, selector)
	defer watches.Stop()
	g.Expect(watches.Cover(t.Context(), configMapsIn("dcb2c4d5f6-1")).StatusCode).To(Equal(http.StatusForbidden))
}

func TestWatches_MissingPermission(t *testing.T) {
	g := NewWithT(t)
	allowed := make(chan struct{})
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("watch") == "" {
			_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":[]}`)
			return
		}
		select {
		case <-allowed:
			_, _ = fmt.Fprintln(writer, configMap)
			_ = http.NewResponseController(writer).Flush()
			<-request.Context().Done()
		default:
			writer.WriteHeader(http.StatusForbidden)
		}
	})
	connected, err := client.New(config, client.NewGuard("dcb2c4d5f6"))
	g.Expect(err).NotTo(HaveOccurred())
	watches := journal.NewWatches(connected, selector)
	defer watches.Stop()

	refused := watches.Cover(t.Context(), configMapsIn("dcb2c4d5f6-1"))
	g.Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
	g.Expect(refused.Request).To(Equal("watch configmaps"))
	g.Expect(watches.Covers(configMapsIn("dcb2c4d5f6-1"))).To(BeFalse())
	g.Consistently(func() error { _, err := watches.Journal.Read(nil); return err }, "50ms").Should(Succeed(), "no history was promised")

	close(allowed)
	g.Expect(watches.Cover(t.Context(), configMapsIn("dcb2c4d5f6-1")).Err).NotTo(HaveOccurred())
	g.Eventually(func() ([]journal.Event, error) { return watches.Journal.Read(nil) }).Should(HaveLen(1))
}

func TestJournal_Limit(t *testing.T) {
	g := NewWithT(t)
	kept := &journal.Journal{}
	object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"text": strings.Repeat("a", 1<<20)}, "list": []any{int64(1)}}}
	for range 60 {
		kept.Add(journal.Event{Type: watch.Modified, Object: object})
	}
	events, err := kept.Read(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(events).To(HaveLen(60))

	for range 1000 {
		kept.Add(journal.Event{Type: watch.Modified, Object: object})
	}
	events, err = kept.Read(nil)
	g.Expect(err).To(MatchError(ContainSubstring("the watches have received more than 64 MiB")))
	g.Expect(len(events)).To(BeNumerically("<=", 64))

	kept.Forget()
	kept.Add(journal.Event{Type: watch.Added, Object: object})
	g.Expect(kept.Read(nil)).To(HaveLen(1))
}
