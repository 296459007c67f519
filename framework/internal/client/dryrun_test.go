package client

import (
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/apiservertest"
)

func TestWhereNothingMayBeChangedOnlyReadsAndDryRunsAreSent(t *testing.T) {
	object := in("n", fixtures.ConfigMap("c"))
	for name, test := range map[string]struct {
		send func(*Client) Response
		sent int
	}{
		"a read":             {func(c *Client) Response { return c.Get(t.Context(), object) }, 1},
		"a dry-run creation": {func(c *Client) Response { return c.DryRunCreate(t.Context(), object) }, 1},
		"a dry-run delete": {func(c *Client) Response {
			return c.Do(t.Context(), object, Request{Method: http.MethodDelete, Query: DryRun()})
		}, 1},
		"a review": {func(c *Client) Response {
			return c.SendOnce(t.Context(), Request{Method: http.MethodPost, Path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"})
		}, 1},
		"a creation": {func(c *Client) Response { return c.Create(t.Context(), object) }, 0},
		"a delete":   {func(c *Client) Response { return c.Delete(t.Context(), object, metav1.DeleteOptions{}) }, 0},
		"a delete of all": {func(c *Client) Response {
			return c.DeleteCollection(t.Context(), configMaps, Request{Query: url.Values{"labelSelector": {"a=b"}}})
		}, 0},
		"a patch": {func(c *Client) Response {
			return c.Patch(t.Context(), object, types.MergePatchType, map[string]any{}, "")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			config, requests := apiservertest.Start(t, answering(http.StatusOK, stored))
			client, err := New(OnlyDryRun(config), NewGuard("dc1", "n"))
			g.Expect(err).NotTo(HaveOccurred())
			client.patience = 0

			test.send(client)

			g.Expect(requests.Load()).To(BeEquivalentTo(test.sent))
		})
	}
}
