package controller

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// A Deployment that a run has scaled to 0 has these labels until it is scaled back. They are not annotations, of which the
// Deployment's controller would leave copies on its ReplicaSets.
const (
	// StoppedByLabel names the run.
	StoppedByLabel = client.Domain + "/stopped-by"
	// replicasLabel is how many replicas it had.
	replicasLabel = client.Domain + "/replicas"
)

// Stop scales a Deployment to 0 on behalf of a run. What it says of that, and that it does, are one write. The response is that
// of what failed, or of the write.
func Stop(ctx context.Context, with *client.Client, which Controller, run string) client.Response {
	return change(ctx, with, which, func(read *client.Object) map[string]any {
		had := replicasOf(decode(read))
		if had == 0 {
			return nil // and nothing to scale back to
		}
		return patchOf(map[string]any{StoppedByLabel: run, replicasLabel: strconv.Itoa(int(had))}, new(int32(0)))
	})
}

// Start scales a Deployment back that a run has scaled to 0, and ignores what somebody else has scaled since. One that is gone,
// or that the run has not stopped, is left alone.
func Start(ctx context.Context, with *client.Client, which Controller, run string) client.Response {
	response := change(ctx, with, which, func(read *client.Object) map[string]any {
		if read.GetLabels()[StoppedByLabel] != run {
			return nil
		}
		return patchOf(map[string]any{StoppedByLabel: nil, replicasLabel: nil}, former(read))
	})
	if apierrors.IsNotFound(response.Err) {
		response.Err = nil
	}
	return response
}

// former is how many replicas a Deployment had before it was stopped; nil where somebody has given it others since.
func former(read *client.Object) *int32 {
	had, err := strconv.ParseInt(read.GetLabels()[replicasLabel], 10, 32)
	if replicasOf(decode(read)) != 0 || err != nil {
		return nil
	}
	return new(int32(had))
}

// patchOf is a merge patch of labels, and of the number of replicas where there is one.
func patchOf(labels map[string]any, replicas *int32) map[string]any {
	patch := map[string]any{"metadata": map[string]any{"labels": labels}}
	if replicas != nil {
		patch["spec"] = map[string]any{"replicas": *replicas}
	}
	return patch
}

// change reads a Deployment and patches what it read, again where somebody wrote it in between. A nil patch changes nothing.
func change(ctx context.Context, with *client.Client, which Controller, patchFor func(read *client.Object) map[string]any) client.Response {
	var response client.Response
	_ = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if response = with.Get(ctx, which.Object()); response.Err != nil {
			return response.Err
		}
		patch := patchFor(response.Object)
		if patch == nil {
			return nil
		}
		metadata, _ := patch["metadata"].(map[string]any)
		metadata["resourceVersion"] = response.Object.GetResourceVersion()
		response = with.Patch(ctx, response.Object, types.MergePatchType, patch, "")
		return response.Err
	})
	if response.Err != nil {
		response.Err = fmt.Errorf("scale %s: %w", which, response.Err)
	}
	return response
}
