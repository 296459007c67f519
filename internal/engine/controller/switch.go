package controller

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// A Deployment that a run scaled to 0 has these labels until it is scaled back. They are not annotations, because the Deployment controller
// would copy those to its ReplicaSets.
const (
	// StoppedByLabel is the id of the run.
	StoppedByLabel = client.Domain + "/stopped-by"
	// replicasLabel is the former number of replicas.
	replicasLabel = client.Domain + "/replicas"
)

// Stop scales a Deployment to 0 for a run and labels it in the same write. The response is that of the failed request, or of the write.
func Stop(ctx context.Context, with *client.Client, which Controller, run string) client.Response {
	return change(ctx, with, which, func(read *client.Object) map[string]any {
		had := replicasOf(decode(read))
		if had == 0 {
			return nil // nothing to scale back to
		}
		return patchOf(map[string]any{StoppedByLabel: run, replicasLabel: strconv.Itoa(int(had))}, new(int32(0)))
	})
}

// Start reverts Stop, unless someone has scaled the Deployment since. It leaves a Deployment alone that is gone or that the run has not
// stopped.
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

// former returns the number of replicas before the stop; nil when someone has scaled the Deployment since.
func former(read *client.Object) *int32 {
	had, err := strconv.ParseInt(read.GetLabels()[replicasLabel], 10, 32)
	if replicasOf(decode(read)) != 0 || err != nil {
		return nil
	}
	return new(int32(had))
}

// patchOf returns a merge patch of labels and, if set, the number of replicas.
func patchOf(labels map[string]any, replicas *int32) map[string]any {
	patch := map[string]any{"metadata": map[string]any{"labels": labels}}
	if replicas != nil {
		patch["spec"] = map[string]any{"replicas": *replicas}
	}
	return patch
}

// change reads a Deployment and patches it, and retries on conflict. A nil patch changes nothing.
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
