package environment

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

// The namespace controller deletes a namespace's content kind by kind. While an APIService is unavailable it cannot tell which
// kinds there are, and no namespace of the cluster goes.

var apiServices = client.Collection{
	Resource: schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, Kind: "APIService",
}

// apiServicesAtOnce is how many APIServices are read in one request. A cluster has one for each version of an API group.
const apiServicesAtOnce = "500"

// unavailableAPIs names the APIs that are registered and do not answer, and says why. Where the credentials do not allow to
// list APIServices, discovery tells.
func unavailableAPIs(ctx context.Context, with *client.Client) ([]string, error) {
	var unavailable []string
	for next, first := "", true; first || next != ""; first = false {
		page, following, response := with.Page(ctx, apiServices, url.Values{"limit": {apiServicesAtOnce}, "continue": {next}})
		switch {
		case apierrors.IsForbidden(response.Err):
			return with.Undiscovered()
		case apierrors.IsNotFound(response.Err):
			return nil, nil // a server without aggregation
		case response.Err != nil:
			return nil, fmt.Errorf("list APIServices: %w", response.Err)
		}
		for _, service := range page {
			if reason := whyUnavailable(service); reason != "" {
				unavailable = append(unavailable, fmt.Sprintf("APIService %q is unavailable (%s)", service.GetName(), reason))
			}
		}
		next = following
	}
	slices.Sort(unavailable)
	return unavailable, nil
}

// whyUnavailable says why an APIService is unavailable; it is empty for one that is not.
func whyUnavailable(service *client.Object) string {
	for _, condition := range describe.Conditions(service) {
		if condition.Type == "Available" && condition.Status == metav1.ConditionFalse {
			return strings.TrimSuffix(condition.Reason+": "+condition.Message, ": ")
		}
	}
	return ""
}

// checkAPIServices looks for APIs that are registered and do not answer.
func (e *Environment) checkAPIServices(context.Context) ([]v1alpha1.Finding, error) {
	unavailable, err := e.unavailable()
	if err != nil {
		return nil, err
	}
	unreadable, err := e.unreadable()
	if err != nil {
		return nil, err
	}
	if len(unavailable) == 0 && len(unreadable) > 0 {
		return []v1alpha1.Finding{{
			Check: apiServicesCheck, Severity: v1alpha1.Notice, Cause: strings.Join(unreadable, "; "),
			Effect: "namespaces of the cluster are deleted slowly", Remedy: conversionRemedy,
		}}, nil
	}
	if len(unavailable) == 0 {
		return []v1alpha1.Finding{{Check: apiServicesCheck, Severity: v1alpha1.OK, Cause: "all APIs answer"}}, nil
	}
	return []v1alpha1.Finding{{
		Check: apiServicesCheck, Severity: v1alpha1.Notice, Cause: strings.Join(unavailable, "; "),
		Effect: "no namespace of the cluster can go, those of this run included", Remedy: apiServiceRemedy,
	}}, nil
}

// apiServiceRemedy is what to do about an APIService that is unavailable.
const apiServiceRemedy = "repair or delete the APIService, or use --namespace"

// conversionRemedy is what to do about a custom resource whose objects cannot be converted.
const conversionRemedy = "repair the conversion webhook of the CustomResourceDefinition"

// probeNamespaces finds out whether specs may create namespaces, and whether these would go.
func (e *Environment) probeNamespaces(ctx context.Context) error {
	if err := e.probePermission("namespaces", "")(ctx); err != nil {
		return err
	}
	unreadable, err := e.unreadable()
	if err != nil {
		return err
	}
	if len(unreadable) > 0 {
		return missingFeature{apiServicesCheck, "namespaces are deleted slowly: " + strings.Join(unreadable, "; "), conversionRemedy}
	}
	unavailable, err := e.unavailable()
	if err != nil || len(unavailable) == 0 {
		return err
	}
	return missingFeature{apiServicesCheck, "no namespace can go: " + strings.Join(unavailable, "; "), apiServiceRemedy}
}

// stuckTimeout is how long a run waits for its namespaces while an APIService is unavailable. They do not go, but all that they hold
// does.
const stuckTimeout = 20 * time.Second

// End removes everything the run made, as Teardown does. While an APIService is unavailable it does not wait for namespaces, which
// cannot go, but fails soon and names both.
func (e *Environment) End(ctx context.Context) error {
	if e.inSharedNamespace() {
		return e.Teardown(ctx)
	}
	if unavailable, err := unavailableAPIs(ctx, e.client); err != nil || len(unavailable) == 0 {
		return e.explainSlow(e.Teardown(ctx))
	}
	short, cancel := context.WithTimeout(ctx, e.slowed(stuckTimeout))
	defer cancel()
	if err := e.Teardown(short); err == nil {
		return nil
	}
	unavailable, err := unavailableAPIs(ctx, e.client)
	if err != nil || len(unavailable) == 0 {
		return e.Teardown(ctx) // it is available again
	}
	var names []string
	for _, namespace := range e.allNamespaces(ctx) {
		names = append(names, fmt.Sprintf("%q", namespace.GetName()))
	}
	slices.Sort(names)
	return fmt.Errorf("%s: until it is repaired or deleted no namespace of the cluster can go, and these stay: %s",
		strings.Join(unavailable, "; "), strings.Join(names, ", "))
}

// explainSlow adds to an error of the teardown why namespaces are deleted slowly, if that was found out.
func (e *Environment) explainSlow(err error) error {
	if err == nil || e.unreadable == nil { // nothing is found out for the cleanup of an earlier run
		return err
	}
	if unreadable, _ := e.unreadable(); len(unreadable) > 0 {
		return fmt.Errorf("namespaces are deleted slowly: %s: %w", strings.Join(unreadable, "; "), err)
	}
	return err
}

// probeClasses finds out whether specs may create a class of any kind. A spec that may not create the kind that it needs is
// skipped when it is refused.
func (e *Environment) probeClasses(ctx context.Context) error {
	var missing []string
	for resource, group := range map[string]string{"priorityclasses": "scheduling.k8s.io", "volumeattributesclasses": "storage.k8s.io"} {
		create := authorizationv1.ResourceAttributes{Verb: "create", Resource: resource, Group: group}
		switch allowed, err := e.client.Allowed(ctx, create); {
		case err != nil:
			return err
		case allowed:
			return nil
		}
		missing = append(missing, client.Permission(create))
	}
	slices.Sort(missing)
	return denied(missing...)
}
