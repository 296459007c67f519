package framework

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// foreignHold says which of the objects that the spec deleted is still there because of a finalizer that neither the spec nor
// Kubernetes added; empty where there is none.
func (c *Cluster) foreignHold(seen []journal.Event, sent []v1alpha1.Request) string {
	latest := map[string]*Object{}
	for _, event := range seen {
		if latest[string(event.Object.GetUID())] = event.Object; event.Type == "DELETED" {
			delete(latest, string(event.Object.GetUID()))
		}
	}
	sentByTheSpec := func(finalizer string) bool {
		return slices.ContainsFunc(sent, func(request v1alpha1.Request) bool { return strings.Contains(request.Body, `"`+finalizer+`"`) })
	}
	for _, object := range latest {
		if hold := client.ForeignHold(object, slices.DeleteFunc(holding(object), sentByTheSpec)); hold != "" {
			return hold
		}
	}
	return ""
}

// finalizersRemaining is the condition of a namespace whose content has finalizers.
const finalizersRemaining = "NamespaceFinalizersRemaining"

// holding are the finalizers that keep an object, and for a namespace those of its content.
func holding(object *Object) []string {
	finalizers := slices.Clone(object.GetFinalizers())
	for _, condition := range describe.Conditions(object) {
		if condition.Type != finalizersRemaining || condition.Status != metav1.ConditionTrue {
			continue
		}
		_, list, _ := strings.Cut(condition.Message, ": ") // "Some content in the namespace has finalizers remaining: x in 2 resource instances, y in ..."
		for part := range strings.SplitSeq(list, ", ") {
			finalizer, _, _ := strings.Cut(part, " ")
			finalizers = append(finalizers, finalizer)
		}
	}
	return finalizers
}
