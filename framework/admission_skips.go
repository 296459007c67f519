package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// PolicyPolling is the interval for repeating a request until an admission policy applies. The API server compiles new policies once a second.
const PolicyPolling = 50 * time.Millisecond

// A cluster's policies, webhooks and quotas can refuse or change requests of specs. That is not a failure: the spec is skipped, and the
// reason names the policy, webhook or quota. Refusals by the spec's own webhooks, policies and quotas are results.

// skipIfRefused skips the spec when the environment's admission refused a request.
func (c *Cluster) skipIfRefused(response Response) {
	ginkgo.GinkgoHelper()
	if refusal, ok := response.RefusedByAdmission(); ok && !c.isOwn(refusal) {
		ginkgo.Skip(response.Action() + ": " + refusal.String())
	}
}

// isOwn reports whether the plugin of a refusal belongs to the run.
func (c *Cluster) isOwn(refusal admission.Refusal) bool {
	if refusal.Plugin == admission.LimitRange {
		return slices.ContainsFunc(c.used, func(collection client.Collection) bool { return collection.Resource.Resource == "limitranges" })
	}
	return strings.Contains(refusal.Name, client.Domain) || strings.Contains(refusal.Name, c.session.Run) || strings.HasSuffix(refusal.Name, "-"+c.id)
}

// skipIfUnacceptable skips the spec when admission made a new object invalid, or when an admission plugin that does not name itself forbids
// it: the authorizer permits it, and the same object under another name is forbidden too.
func (c *Cluster) skipIfUnacceptable(ctx context.Context, response Response) {
	ginkgo.GinkgoHelper()
	if apierrors.IsInvalid(response.Err) {
		if by := c.session.Mutators.Listed(c.CollectionOf(ctx, response.Sent()).Resource); by != "" {
			ginkgo.Skip(fmt.Sprintf("%s: invalid after %s changed it: %s", response.Action(), by, response.Message()))
		}
	}
	if c.impersonates || !response.RefusedPlainCreate() {
		return
	}
	other := response.Sent().DeepCopy()
	other.SetName("other-" + rand.String(6))
	if c.session.Harness.DryRunCreate(ctx, other).RefusedPlainCreate() {
		ginkgo.Skip(response.Action() + ": " + admission.Unattributed(response.Message()).String())
	}
}

// skipIfChanged skips the spec when the environment's admission changed an object so that the behavior cannot be tested.
func (c *Cluster) skipIfChanged(ctx context.Context, response Response) {
	ginkgo.GinkgoHelper()
	if response.Err != nil || response.Object == nil || c.isResourceUnderTest(response.Object) {
		return
	}
	changes := slices.DeleteFunc(admission.Changes(response.Sent(), response.Object), func(change admission.Change) bool {
		return change.Containers && !c.runsContainers
	})
	if len(changes) == 0 {
		return
	}
	if by, ok := c.session.Mutators.By(c.CollectionOf(ctx, response.Object).Resource); ok {
		ginkgo.Skip(fmt.Sprintf("%s: %s %s", response.Action(), by, changes[0].Text))
	}
}
