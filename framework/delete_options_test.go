package framework

import (
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestDeleteOptions(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []DeleteOption
		want    metav1.DeleteOptions
	}{
		{"nothing", nil, metav1.DeleteOptions{}},
		{"orphan", []DeleteOption{Orphan}, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}},
		{"background", []DeleteOption{Background}, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}},
		{"foreground", []DeleteOption{Foreground}, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}},
		{"a policy by its name", []DeleteOption{Policy("Sideways")}, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletionPropagation("Sideways"))}},
		{
			"the deprecated orphanDependents", []DeleteOption{OrphanDependents(true)},
			metav1.DeleteOptions{OrphanDependents: new(true)}, //nolint:staticcheck // deprecated, and tested
		},
		{
			"grace, both conditions and dry-run", []DeleteOption{Grace(0), IfUID("u"), IfVersion("7"), DryRun},
			metav1.DeleteOptions{
				GracePeriodSeconds: new(int64(0)), DryRun: []string{metav1.DryRunAll},
				Preconditions: &metav1.Preconditions{UID: new(apitypes.UID("u")), ResourceVersion: new("7")},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			request := deletion(test.options)
			g.Expect(request.Options).To(Equal(test.want))
			g.Expect(request.body()).To(Equal(client.WithKind(test.want)), "a body is a DeleteOptions of v1")
			g.Expect(request.query()).To(BeEmpty())
		})
	}
}

func TestDeleteRequest(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []DeleteOption
		query   url.Values
		body    any
	}{
		{
			"by query parameters, without a body",
			[]DeleteOption{Foreground, Grace(0), DryRun, InQuery},
			url.Values{"propagationPolicy": {"Foreground"}, "gracePeriodSeconds": {"0"}, "dryRun": {"All"}}, nil,
		},
		{
			"the deprecated orphanDependents by query parameter",
			[]DeleteOption{OrphanDependents(false), InQuery}, url.Values{"orphanDependents": {"false"}}, nil,
		},
		{"nothing, by query parameters", []DeleteOption{InQuery}, url.Values{}, nil},
		{"a raw body", []DeleteOption{Orphan, RawBody("{")}, url.Values{}, []byte("{")},
		{"an empty body", []DeleteOption{RawBody("")}, url.Values{}, []byte{}},
		{
			"a raw body beside query parameters",
			[]DeleteOption{Orphan, InQuery, RawBody("{}")}, url.Values{"propagationPolicy": {"Orphan"}}, []byte("{}"),
		},
		{
			"options of another API version",
			[]DeleteOption{Grace(5), OptionsOf("meta.k8s.io/v1")}, url.Values{},
			metav1.DeleteOptions{
				TypeMeta:           metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "DeleteOptions"},
				GracePeriodSeconds: new(int64(5)),
			},
		},
		{
			"some of a collection",
			[]DeleteOption{WithLabelSelector("a=b,c"), WithFieldSelector("metadata.name=x"), Limit(2)},
			url.Values{"labelSelector": {"a=b,c"}, "fieldSelector": {"metadata.name=x"}, "limit": {"2"}},
			client.WithKind(metav1.DeleteOptions{}),
		},
		{
			"some of a collection, by query parameters",
			[]DeleteOption{WithLabelSelector("a=b"), Background, InQuery},
			url.Values{"labelSelector": {"a=b"}, "propagationPolicy": {"Background"}}, nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			request := deletion(test.options)
			g.Expect(request.query()).To(Equal(test.query))
			if test.body == nil {
				g.Expect(request.body()).To(BeNil())
				return
			}
			g.Expect(request.body()).To(Equal(test.body))
		})
	}
}
