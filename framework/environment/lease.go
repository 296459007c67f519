package environment

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// lease says that a run is alive: the runner renews it, and `runner cleanup` leaves a run with a fresh one alone.
type lease struct {
	object *client.Object
	cancel context.CancelFunc
	done   chan struct{}
}

const (
	leaseName     = "deletion-conformance"
	leaseDuration = 30 * time.Second
	leaseRenewal  = 10 * time.Second
)

// takeLease makes the run's lease and renews it until it is let go. Credentials that may not make leases, and servers that
// have none, do without: their run then looks dead to `runner cleanup`.
func (e *Environment) takeLease(ctx context.Context, namespace string) (*lease, error) {
	with, run, skew := e.client, e.options.Run, e.skew
	object := &client.Object{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"spec": map[string]any{
			"holderIdentity":       run,
			"leaseDurationSeconds": int64(leaseDuration / time.Second),
			"renewTime":            renewTime(skew),
		},
	}}
	object.SetNamespace(namespace)
	object.SetName(leaseName)
	object.SetLabels(map[string]string{client.RunLabel: run})
	e.annotateLease(object)
	response := with.Create(ctx, object)
	if _, refused := response.RefusedByAdmission(); refused || apierrors.IsForbidden(response.Err) || meta.IsNoMatchError(response.Err) {
		return nil, nil
	}
	if apierrors.IsAlreadyExists(response.Err) {
		return nil, fmt.Errorf("another run is at work in namespace %q, or has left its lease %q there: wait for its end, or remove it with "+
			"`runner cleanup --namespace %s`", namespace, leaseName, namespace)
	}
	if response.Err != nil {
		return nil, fmt.Errorf("create lease %q in namespace %q: %w", leaseName, namespace, response.Err)
	}
	renewing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	taken := &lease{object: response.Object, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(taken.done)
		wait.UntilWithContext(renewing, func(ctx context.Context) { renew(ctx, with, taken.object, skew) }, leaseRenewal)
	}()
	return taken, nil
}

// release stops renewing. The lease itself goes with its namespace.
func (l *lease) release() {
	if l == nil {
		return
	}
	l.cancel()
	<-l.done
}

// renew writes the moment of now into a lease. A renewal that fails, however, is made up for by the next.
func renew(ctx context.Context, with *client.Client, lease *client.Object, skew time.Duration) {
	now := map[string]any{"spec": map[string]any{"renewTime": renewTime(skew)}}
	_ = crash.Caught("renew the lease", func() error {
		with.Patch(ctx, lease, types.MergePatchType, now, "")
		return nil
	})
}

// renewTime is now by the server's clock, which is so far ahead of the runner's: who reads it may have another one.
func renewTime(skew time.Duration) string {
	return time.Now().Add(skew).UTC().Format(metav1.RFC3339Micro)
}

// fresh says until when a lease is good, and whether that is still to come.
func fresh(lease *client.Object, now time.Time) (time.Time, bool) {
	renewed, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
	at, err := time.Parse(time.RFC3339, renewed)
	if err != nil {
		return time.Time{}, false
	}
	until := at.Add(time.Duration(seconds) * time.Second)
	return until, now.Before(until)
}

// young says until when a namespace without a lease is good: a lease would be made, and renewed, in that time.
func young(namespace *client.Object, now time.Time) (time.Time, bool) {
	until := namespace.GetCreationTimestamp().Add(leaseDuration)
	return until, namespace.GetDeletionTimestamp() == nil && now.Before(until)
}
