package environment

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// defineCustomKinds defines the custom kind that the run's specs share, and one that a spec deletes. It returns the domain of their API
// groups. Without the permission, specs that use them are skipped.
func defineCustomKinds(ctx context.Context, with *client.Client, run string) string {
	groups := session.Config{GroupDomain: reserveGroupDomain(ctx, with, run)}
	if groups.GroupDomain == "" { // the domain that is named after the run is unique
		groups.GroupDomain = domainOf(run)
		define(ctx, with, run, groups.CustomGroup())
	}
	define(ctx, with, run, groups.SpareGroup())
	return groups.GroupDomain
}

// domainOf returns the domain that no other run uses.
func domainOf(run string) string { return run + "." + client.Domain }

// maxDomains limits the number of concurrent runs on one cluster that reuse domains.
const maxDomains = 50

// reserveGroupDomain takes a domain for the run's API groups that no other run uses at present, but earlier and later ones do: the first of
// 1., 2. and so on below the harness's domain without a definition. Creating the first definition reserves it. It is empty when none
// is available.
func reserveGroupDomain(ctx context.Context, with *client.Client, run string) string {
	defined, _, response := with.Page(ctx, client.Definitions, url.Values{"labelSelector": {client.RunLabel}, "limit": {"500"}})
	if response.Err != nil {
		return ""
	}
	for number := 1; number <= maxDomains; number++ {
		domain := strconv.Itoa(number) + "." + client.Domain
		if slices.ContainsFunc(defined, func(d *client.Object) bool { return strings.HasSuffix(d.GetName(), "."+domain) }) {
			continue
		}
		switch response := define(ctx, with, run, domain); {
		case response.Err == nil:
			return domain
		case !apierrors.IsAlreadyExists(response.Err): // otherwise another run was faster
			return ""
		}
	}
	return ""
}

// define defines a custom kind in an API group.
func define(ctx context.Context, with *client.Client, run, group string) client.Response {
	definition := fixtures.CustomResourceDefinition(group)
	definition.SetLabels(map[string]string{client.RunLabel: run})
	return with.Create(ctx, definition)
}
