package environment

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// listedAtOnce limits how many objects of a kind a check reads, because others may have any number.
const listedAtOnce = "100"

// denied returns the missingFeature of missing permissions.
func denied(permissions ...string) missingFeature {
	return missingFeature{credentialsCheck, "missing permission: " + strings.Join(permissions, "; "), roleRemedy}
}

// checkCredentials reports the user of the credentials. The probes check permissions.
func (e *Environment) checkCredentials(ctx context.Context) ([]v1alpha1.Finding, error) {
	user, err := e.client.WhoAmI(ctx)
	if err != nil {
		return nil, err
	}
	return []v1alpha1.Finding{{Check: credentialsCheck, Severity: v1alpha1.OK, Cause: fmt.Sprintf("user %q", user)}}, nil
}

// listInside lists a resource in the first namespace of the run. A resource that is not served is empty.
func (e *Environment) listInside(ctx context.Context, resource schema.GroupVersionResource, kind string) ([]*client.Object, error) {
	collection := client.Collection{Resource: resource, Kind: kind, Namespace: e.namespaceOf(1)}
	objects, _, response := e.client.Page(ctx, collection, url.Values{"limit": {listedAtOnce}})
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
func (e *Environment) checkQuota(ctx context.Context) ([]v1alpha1.Finding, error) {
	var found []string
	for kind, resource := range limits {
		objects, err := e.listInside(ctx, resource, kind)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			found = append(found, strings.TrimSpace(client.Title(object)+" "+hardLimits(object)))
		}
	}
	if len(found) == 0 {
		return []v1alpha1.Finding{{Check: quotaCheck, Severity: v1alpha1.OK, Cause: "no quota and no limits in the run's namespaces"}}, nil
	}
	slices.Sort(found)
	return []v1alpha1.Finding{{
		Check: quotaCheck, Severity: v1alpha1.Notice, Cause: strings.Join(found, ", ") + " in the run's namespaces",
		Effect: "objects over the limits are refused", Remedy: "--procs 1, --pod-overlay",
	}}, nil
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

// withoutUsers returns a pod overlay that removes the users and groups of fixtures unless the overlay sets its own, because OpenShift
// assigns a range to each namespace, and its restricted security context constraints refuse others.
func withoutUsers(overlay map[string]any) map[string]any {
	merged := runtime.DeepCopyJSON(overlay)
	if merged == nil {
		merged = map[string]any{}
	}
	spec, _ := merged["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	security, _ := spec["securityContext"].(map[string]any)
	if security == nil {
		security = map[string]any{}
	}
	for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
		if _, chosen := security[field]; !chosen {
			security[field] = nil
		}
	}
	spec["securityContext"], merged["spec"] = security, spec
	return merged
}

// isOpenShift reports whether the server has OpenShift's security context constraints.
func (e *Environment) isOpenShift() bool { return e.client.ServesGroup("security.openshift.io") }
