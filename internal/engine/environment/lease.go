package environment

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// lease marks a run as active: the runner renews it, and `runner cleanup` skips a run with a valid one.
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

// controllerAnnotation contains the controller of the resource under test as namespace/name, for the user of `runner cleanup`.
const controllerAnnotation = client.Domain + "/controller"

// acquireLease creates the run's lease and renews it until release. A run without the permission, or on a server without leases, has none, and
// `runner cleanup` considers it inactive.
func acquireLease(ctx context.Context, with *client.Client, worker session.Config, skew time.Duration) (*lease, error) {
	namespace := worker.Namespace
	object := &client.Object{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"spec": map[string]any{
			"holderIdentity":       worker.Run,
			"leaseDurationSeconds": int64(leaseDuration / time.Second),
			"renewTime":            renewTime(skew),
		},
	}}
	object.SetNamespace(namespace)
	object.SetName(leaseName)
	object.SetLabels(map[string]string{client.RunLabel: worker.Run})
	if which := worker.Controller; which.IsDeployment() {
		object.SetAnnotations(map[string]string{controllerAnnotation: which.Namespace + "/" + which.Name})
	}
	response := with.Create(ctx, object)
	if _, refused := response.RefusedByAdmission(); refused || apierrors.IsForbidden(response.Err) || meta.IsNoMatchError(response.Err) {
		return nil, nil
	}
	if apierrors.IsAlreadyExists(response.Err) {
		return nil, fmt.Errorf("another run is active in namespace %q, or left its lease %q there: wait until it ends, or remove it with "+
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

// release stops renewing. The lease is deleted with its namespace.
func (l *lease) release() {
	if l == nil {
		return
	}
	l.cancel()
	<-l.done
}

// renew updates the renewTime of a lease. The next renewal makes up for a failure.
func renew(ctx context.Context, with *client.Client, lease *client.Object, skew time.Duration) {
	now := map[string]any{"spec": map[string]any{"renewTime": renewTime(skew)}}
	_ = crash.Caught("renew the lease", func() error {
		with.Patch(ctx, lease, types.MergePatchType, now, "")
		return nil
	})
}

// renewTime is the current time of the server's clock, because its reader may have another clock.
func renewTime(skew time.Duration) string {
	return time.Now().Add(skew).UTC().Format(metav1.RFC3339Micro)
}

// holderOf returns the id of the run that took a lease.
func holderOf(lease *client.Object) string {
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

// controllerOf returns the controller that a lease names, if it is a valid one.
func controllerOf(lease *client.Object) session.Controller {
	namespace, name, _ := strings.Cut(lease.GetAnnotations()[controllerAnnotation], "/")
	named, _ := controller.Parse("deploy/"+name, namespace)
	return named
}

// fresh returns until when a lease is valid, and whether it is.
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

// young returns until when a new namespace without a lease counts as active, and whether it does: its run may not have created the lease
// yet.
func young(namespace *client.Object, now time.Time) (time.Time, bool) {
	until := namespace.GetCreationTimestamp().Add(leaseDuration)
	return until, namespace.GetDeletionTimestamp() == nil && now.Before(until)
}
