package preflight

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// The clocks of the runner, of the API server and of the nodes may differ. The server's clock is used for times that are compared with
// those of other runs, or with timestamps of the server.

// Skew is how far the clock of a server is ahead of the runner's, from the creationTimestamp of a dry-run. It is 0 when it cannot be
// measured or is too small to measure, because timestamps have whole seconds.
func Skew(ctx context.Context, with *client.Client, namespace string) time.Duration {
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

// skewBetween is how far another clock is ahead, given its timestamp in whole seconds between two times of this clock.
func skewBetween(sent, received, stamped time.Time) time.Duration {
	least, most := stamped.Sub(received), stamped.Add(time.Second).Sub(sent)
	if least <= 0 && most >= 0 {
		return 0
	}
	return (least + most) / 2
}

// noticeableSkew is the difference of clocks that is reported.
const noticeableSkew = 2 * time.Second

// checkClock reports differences between the clocks of the runner, the server and the nodes.
func checkClock(t Target, nodes map[string]time.Duration) v1alpha1.Finding {
	var found []string
	if t.Skew.Abs() > noticeableSkew {
		found = append(found, "the server's clock is "+aheadOf(t.Skew, "the runner's"))
	}
	effect := "times are compared by the server's clock"
	if t.requires(v1alpha1.Node) {
		for _, node := range slices.Sorted(maps.Keys(nodes)) {
			found = append(found, fmt.Sprintf("the clock of node %q is %s", node, aheadOf(nodes[node], "the server's")))
		}
		effect += ", and times that nodes write are corrected"
	}
	if len(found) == 0 {
		return v1alpha1.Finding{Check: clockCheck, Severity: v1alpha1.OK, Cause: "the clocks agree"}
	}
	return v1alpha1.Finding{Check: clockCheck, Severity: v1alpha1.Notice, Cause: strings.Join(found, "; "), Effect: effect}
}

// aheadOf describes a difference of clocks.
func aheadOf(skew time.Duration, other string) string {
	if skew < 0 {
		return fmt.Sprintf("%s behind %s", (-skew).Round(time.Second), other)
	}
	return fmt.Sprintf("%s ahead of %s", skew.Round(time.Second), other)
}

var nodeLeases = client.Collection{
	Resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespace: corev1.NamespaceNodeLease,
}

// measureNodes returns how far the clocks of nodes are ahead of the server's, by node, if they differ and the credentials may list the
// leases that kubelets renew.
func measureNodes(ctx context.Context, with *client.Client) map[string]time.Duration {
	leases, _, _ := with.Page(ctx, nodeLeases, url.Values{"limit": {maxParallelLists}})
	skews := map[string]time.Duration{}
	for _, lease := range leases {
		if skew := skewOfNode(lease); skew != 0 {
			skews[lease.GetName()] = skew
		}
	}
	return skews
}

const (
	// renewalTime is how long a renewal may take between the node's timestamp and the server's, on clocks that agree.
	renewalTime = 250 * time.Millisecond
	// rounding is the error of corrected times in whole seconds.
	rounding = time.Second
)

// skewOfNode compares the time that a kubelet wrote into its lease with the time, in whole seconds, at which the server stored it. It
// returns the smallest possible skew less the rounding, so that no corrected time is too early. It returns 0 when the clocks agree, and
// when the server does not track managed fields.
func skewOfNode(lease *client.Object) time.Duration {
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	renewed, err := time.Parse(metav1.RFC3339Micro, text)
	var stored time.Time
	for _, entry := range lease.GetManagedFields() {
		_, renews, _ := unstructured.NestedFieldNoCopy(describe.WrittenFields(entry), "f:spec", "f:renewTime")
		if renews && entry.Time != nil {
			stored = entry.Time.Time
		}
	}
	ahead := renewed.Sub(stored)
	if err != nil || stored.IsZero() || ahead > -renewalTime && ahead < time.Second {
		return 0
	}
	return ahead - time.Second - rounding
}
