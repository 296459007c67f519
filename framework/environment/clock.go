package environment

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// The clocks of the runner, of the API server and of the nodes may differ. Times that are compared with those of other runs, or with
// what the server stamps, are those of the server's clock.

// skewOf is how far the clock of a server is ahead of the runner's, by the creationTimestamp of what it would create in a namespace.
// It is 0 where that cannot be found out, and where the difference is less than can be told: stamps are in whole seconds.
func skewOf(ctx context.Context, with *client.Client, namespace string) time.Duration {
	object := with.StandInFor(fixtures.ConfigMap("clock"))
	object.SetNamespace(namespace)
	sent := time.Now()
	response := with.DryRunCreate(ctx, object)
	received := time.Now()
	if response.Err != nil || response.Object == nil {
		return 0
	}
	stamped := response.Object.GetCreationTimestamp()
	if stamped.IsZero() {
		return 0
	}
	return skewBetween(sent, received, stamped.Time)
}

// skewBetween is how far a clock is ahead that was stamped, in whole seconds, between two moments of this one.
func skewBetween(sent, received, stamped time.Time) time.Duration {
	least, most := stamped.Sub(received), stamped.Add(time.Second).Sub(sent)
	if least <= 0 && most >= 0 {
		return 0
	}
	return (least + most) / 2
}

// now is the server's clock.
func (e *Environment) now() time.Time { return time.Now().Add(e.skew) }

// noticeableSkew is how much clocks may differ before it is worth a line.
const noticeableSkew = 2 * time.Second

// checkClock compares the clocks of the runner, the server and the nodes.
func (e *Environment) checkClock(ctx context.Context) ([]v1alpha1.Finding, error) {
	var found []string
	if e.skew.Abs() > noticeableSkew {
		found = append(found, "the server's clock is "+aheadOf(e.skew, "the runner's"))
	}
	effect := "moments are compared by the server's clock"
	if e.wants(v1alpha1.Node) {
		if skewed := e.skewedNodes(ctx); len(skewed) > 0 {
			found, effect = append(found, skewed...), "times that nodes report may look early or late: failures of node behaviours may come from that"
		}
	}
	if len(found) == 0 {
		return []v1alpha1.Finding{{Check: clockCheck, Severity: v1alpha1.OK, Cause: "the clocks agree"}}, nil
	}
	return []v1alpha1.Finding{{Check: clockCheck, Severity: v1alpha1.Notice, Cause: strings.Join(found, "; "), Effect: effect}}, nil
}

// aheadOf words a difference of clocks.
func aheadOf(skew time.Duration, other string) string {
	if skew < 0 {
		return fmt.Sprintf("%s behind %s", (-skew).Round(time.Second), other)
	}
	return fmt.Sprintf("%s ahead of %s", skew.Round(time.Second), other)
}

const (
	// renewal is how long ago a kubelet that lives has renewed its lease at most, with a reserve: it does so every 10 s.
	renewal = 20 * time.Second
	// dead is how long ago a kubelet has renewed its lease that no longer lives, or whose clock nobody would look at.
	dead = time.Hour
)

var nodeLeases = client.Collection{
	Resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespace: corev1.NamespaceNodeLease,
}

// skewedNodes names nodes whose clocks differ from the server's, by the leases that their kubelets renew. Where the credentials do
// not allow to look at these, it names none.
func (e *Environment) skewedNodes(ctx context.Context) []string {
	leases, _, _ := e.client.Page(ctx, nodeLeases, url.Values{"limit": {listedAtOnce}})
	var found []string
	for _, lease := range leases {
		text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
		renewed, err := time.Parse(metav1.RFC3339Micro, text)
		if skew := renewed.Sub(e.now()); err == nil && (skew > noticeableSkew || skew < -renewal && skew > -dead) {
			found = append(found, fmt.Sprintf("the clock of node %q is %s", lease.GetName(), aheadOf(skew, "the server's")))
		}
	}
	return found
}
