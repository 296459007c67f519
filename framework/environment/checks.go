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
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// listedAtOnce is how many objects of a kind a check reads. Others may have any number of them.
const listedAtOnce = "100"

// denied is the missingFeature of permissions that are missing.
func denied(permissions ...string) missingFeature {
	return missingFeature{credentialsCheck, "the credentials do not allow to " + strings.Join(permissions, ", nor to "), roleRemedy}
}

// checkCredentials finds out who the server takes the credentials for. What they lack is found out by the probes.
func (e *Environment) checkCredentials(ctx context.Context) ([]v1alpha1.Finding, error) {
	user, err := e.client.WhoAmI(ctx)
	if err != nil {
		return nil, err
	}
	return []v1alpha1.Finding{{Check: credentialsCheck, Severity: v1alpha1.OK, Cause: fmt.Sprintf("user %q", user)}}, nil
}

// listInside lists what others have of a resource in the first namespace of the run. What the server does not serve is not there.
func (e *Environment) listInside(ctx context.Context, resource schema.GroupVersionResource, kind string) ([]*client.Object, error) {
	collection := client.Collection{Resource: resource, Kind: kind, Namespace: e.Session(1).Namespace}
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

// checkQuota looks for quotas and limits in the run's namespaces. What these refuse shows in dry-runs.
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

// hardLimits are what a ResourceQuota allows: (pods=10). They are empty for other kinds.
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

// withoutUsers is an overlay for pods that takes the users and groups off which fixtures name, unless the overlay sets its own:
// OpenShift assigns each namespace a range of them, and its restricted security context constraints refuse others.
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

// isOpenShift says that the server has the security context constraints of OpenShift.
func (e *Environment) isOpenShift() bool { return e.client.ServesGroup("security.openshift.io") }
