package preflight

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// maxParallelLists limits how many objects of a kind a check reads, because others may have any number.
const maxParallelLists = "100"

// listInside lists a resource in the first namespace of the run. A resource that is not served is empty.
func listInside(ctx context.Context, t Target, resource schema.GroupVersionResource, kind string) ([]*client.Object, error) {
	collection := client.Collection{Resource: resource, Kind: kind, Namespace: t.Namespace}
	objects, _, response := t.Client.Page(ctx, collection, url.Values{"limit": {maxParallelLists}})
	if response.Err != nil && !apierrors.IsNotFound(response.Err) {
		return nil, fmt.Errorf("list %s in namespace %q: %w", resource.Resource, collection.Namespace, response.Err)
	}
	return slices.DeleteFunc(objects, func(object *client.Object) bool {
		_, own := object.GetLabels()[client.RunLabel]
		return own
	}), nil
}

// limits are the kinds that limit what may be created in a namespace.
var limits = map[string]schema.GroupVersionResource{
	"ResourceQuota": {Version: "v1", Resource: "resourcequotas"},
	"LimitRange":    {Version: "v1", Resource: "limitranges"},
}

// checkQuota reports quotas and limits in the run's namespaces. Dry-runs show what they refuse.
func checkQuota(ctx context.Context, t Target) (v1alpha1.Finding, error) {
	var found []string
	for kind, resource := range limits {
		objects, err := listInside(ctx, t, resource, kind)
		if err != nil {
			return v1alpha1.Finding{}, err
		}
		for _, object := range objects {
			found = append(found, strings.TrimSpace(client.Title(object)+" "+hardLimits(object)))
		}
	}
	if len(found) == 0 {
		return v1alpha1.Finding{Check: quotaCheck, Severity: v1alpha1.OK, Cause: "no quota and no limits in the run's namespaces"}, nil
	}
	slices.Sort(found)
	return v1alpha1.Finding{
		Check: quotaCheck, Severity: v1alpha1.Notice, Cause: strings.Join(found, ", ") + " in the run's namespaces",
		Effect: "objects over the limits are refused", Remedy: "--procs 1, --pod-overlay",
	}, nil
}

// hardLimits returns the limits of a ResourceQuota: (pods=10). It is empty for other kinds.
func hardLimits(object *client.Object) string {
	hard, _, _ := unstructured.NestedStringMap(object.Object, "spec", "hard")
	var limits []string
	for resource, limit := range hard {
		limits = append(limits, resource+"="+limit)
	}
	if len(limits) == 0 {
		return ""
	}
	slices.Sort(limits)
	return "(" + strings.Join(limits, " ") + ")"
}
