package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// restartPolling is the interval for checking whether a Deployment has stopped or started.
const restartPolling = 100 * time.Millisecond

// Restart stops a controller for a run and starts it again, also where the context has ended meanwhile. A Deployment is scaled to 0 and back. It
// fails if the controller does not stop, or does not start, within some time each.
func Restart(ctx context.Context, with *client.Client, which Controller, run string, within time.Duration) error {
	if !which.IsDeployment() {
		limited, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		start, err := Pause(limited, which)
		if err != nil {
			return err
		}
		return start()
	}
	if response := Stop(ctx, with, which, run); response.Err != nil {
		return response.Err
	}
	stopped := await(ctx, with, which, within, func(read *client.Object) error {
		if left := decode(read).Status.Replicas; left > 0 {
			return fmt.Errorf("%s still has %d pods", which, left)
		}
		return nil
	})
	ctx = context.WithoutCancel(ctx)
	if err := errors.Join(stopped, Start(ctx, with, which, run).Err); err != nil {
		return err
	}
	return await(ctx, with, which, within, AtWork)
}

// await waits until a check of a Deployment has no error. It fails with the last one.
func await(ctx context.Context, with *client.Client, which Controller, within time.Duration, check func(*client.Object) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, restartPolling, within, true, func(ctx context.Context) (bool, error) {
		response := with.Get(ctx, which.Object())
		if response.Err != nil { // the time may be over
			last = cmp.Or(last, response.Err)
			return false, nil //nolint:nilerr // it is tried again
		}
		last = check(response.Object)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("restart %s: %w", which, errors.Join(last, err))
	}
	return nil
}
