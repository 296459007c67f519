package framework

import (
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// foreignHold describes an object that the spec deleted and that still exists because of a finalizer that neither the spec nor Kubernetes
// added; empty when there is none.
func (c *Cluster) foreignHold(seen []journal.Event, sent []v1alpha1.Request) string {
	latest := map[string]*Object{}
	for _, event := range seen {
		if latest[string(event.Object.GetUID())] = event.Object; event.Type == "DELETED" {
			delete(latest, string(event.Object.GetUID()))
		}
	}
	for _, object := range latest {
		// A spec updates whole objects of the kind under test, and so sends the finalizers of its controller, too.
		sentByTheSpec := func(finalizer string) bool {
			return !c.isKindUnderTest(object) && slices.ContainsFunc(sent, func(request v1alpha1.Request) bool {
				return strings.Contains(request.Body, `"`+finalizer+`"`)
			})
		}
		if hold := client.ForeignHold(object, slices.DeleteFunc(holding(object), sentByTheSpec)); hold != "" {
			return hold
		}
	}
	return ""
}

// noteHold records in the evidence of a failed spec that a controller of the resource under test does not remove its finalizer. It returns
// the hold as the skip reason, unless the spec is about the controller.
func (c *Cluster) noteHold(evidence *specs.Evidence, behavior v1alpha1.Behavior, hold string) (skipReason string) {
	if hold == "" || c.session.Resource == nil {
		return hold
	}
	switch limit := c.session.TimeoutFor(behavior); {
	case c.session.Unreleased != "":
		hold += ". " + c.session.Shortened()
	case time.Since(ginkgo.CurrentSpecReport().StartTime) > limit:
		evidence.Unreleased = client.Unreleased(hold, limit)
		c.session.Unreleased = evidence.Unreleased
	}
	if c.expectsOtherManagers {
		return ""
	}
	return hold
}

// finalizersRemaining is the condition of a namespace with content that has finalizers.
const finalizersRemaining = "NamespaceFinalizersRemaining"

// holding returns the finalizers of an object, and for a namespace those of its content.
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
