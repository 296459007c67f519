package environment

import (
	"context"
	"errors"
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
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// The namespace controller deletes a namespace's content kind by kind. While an APIService is unavailable it cannot discover all kinds, and
// no namespace of the cluster can be deleted.

var apiServices = client.Collection{
	Resource: schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, Kind: "APIService",
}

// apiServicesAtOnce is the page size for APIServices. A cluster has one for each version of an API group.
const apiServicesAtOnce = "500"

// unavailableAPIs describes the registered APIs that do not respond. If the credentials may not list APIServices it uses discovery.
func unavailableAPIs(ctx context.Context, with *client.Client) ([]string, error) {
	var unavailable []string
	for next, first := "", true; first || next != ""; first = false {
		page, following, response := with.Page(ctx, apiServices, url.Values{"limit": {apiServicesAtOnce}, "continue": {next}})
		switch {
		case apierrors.IsForbidden(response.Err):
			return with.DiscoveryFailures()
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

// whyUnavailable returns why an APIService is unavailable; empty when it is available.
func whyUnavailable(service *client.Object) string {
	for _, condition := range describe.Conditions(service) {
		if condition.Type == "Available" && condition.Status == metav1.ConditionFalse {
			return strings.TrimSuffix(condition.Reason+": "+condition.Message, ": ")
		}
	}
	return ""
}

// checkAPIServices reports registered APIs that do not respond.
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
		return []v1alpha1.Finding{{Check: apiServicesCheck, Severity: v1alpha1.OK, Cause: "all APIs respond"}}, nil
	}
	return []v1alpha1.Finding{{
		Check: apiServicesCheck, Severity: v1alpha1.Notice, Cause: strings.Join(unavailable, "; "),
		Effect: "no namespace of the cluster can be deleted, including those of this run", Remedy: apiServiceRemedy,
	}}, nil
}

// apiServiceRemedy is the remedy for an unavailable APIService.
const apiServiceRemedy = "repair or delete the APIService, or use --namespace"

// conversionRemedy is the remedy for a custom resource whose objects cannot be converted.
const conversionRemedy = "repair the conversion webhook of the CustomResourceDefinition"

// probeNamespaces checks whether specs may create namespaces, and whether these can be deleted.
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
	return missingFeature{apiServicesCheck, "no namespace can be deleted: " + strings.Join(unavailable, "; "), apiServiceRemedy}
}

// stuckTimeout is how long a run waits for its namespaces while an APIService is unavailable. Their content is deleted, but they are not.
const stuckTimeout = 20 * time.Second

// End removes everything that the run created, as Teardown does. While an APIService is unavailable it does not wait for namespaces, but
// fails with an error that names both.
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
	namespaces, err := e.newTeardown(time.Now()).allNamespaces(ctx)
	var names []string
	for _, namespace := range namespaces {
		names = append(names, fmt.Sprintf("%q", namespace.GetName()))
	}
	slices.Sort(names)
	return errors.Join(fmt.Errorf("%s: until it is repaired or deleted no namespace of the cluster can be deleted, and these remain: %s",
		strings.Join(unavailable, "; "), strings.Join(names, ", ")), err)
}

// explainSlow adds to an error of the teardown why namespaces are deleted slowly, if that is known.
func (e *Environment) explainSlow(err error) error {
	if err == nil || e.unreadable == nil { // a cleanup of an earlier run does not find that out
		return err
	}
	if unreadable, _ := e.unreadable(); len(unreadable) > 0 {
		return fmt.Errorf("namespaces are deleted slowly: %s: %w", strings.Join(unreadable, "; "), err)
	}
	return err
}

// probeClasses checks whether specs may create a class of any kind. A spec that may not create the kind that it needs is skipped after the
// refusal.
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
