package environment

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// defineCustomKinds defines the custom kind that the run's specs share, and one that a spec deletes. Without the permission, specs that use
// them are skipped.
func (e *Environment) defineCustomKinds(ctx context.Context) {
	if !e.takeGroupDomain(ctx) { // the domain that is named after the run is unique
		e.define(ctx, e.Session(1).CustomGroup())
	}
	e.define(ctx, e.Session(1).SpareGroup())
}

// mostDomains limits the number of concurrent runs on one cluster that reuse domains.
const mostDomains = 50

// takeGroupDomain takes a domain for the run's API groups that no other run uses at present, but earlier and later ones do: the first of
// 1., 2. and so on below the harness's domain without a definition. Creating the first definition reserves it. It is false when none is
// available.
func (e *Environment) takeGroupDomain(ctx context.Context) bool {
	definitions, err := e.client.CollectionOf(fixtures.CustomResourceDefinition(client.Domain))
	if err != nil {
		return false
	}
	defined, _, response := e.client.Page(ctx, definitions, url.Values{"labelSelector": {client.RunLabel}, "limit": {"500"}})
	if response.Err != nil {
		return false
	}
	for number := 1; number <= mostDomains; number++ {
		domain := strconv.Itoa(number) + "." + client.Domain
		if slices.ContainsFunc(defined, func(d *client.Object) bool { return strings.HasSuffix(d.GetName(), "."+domain) }) {
			continue
		}
		switch response := e.define(ctx, domain); {
		case response.Err == nil:
			e.groupDomain = domain
			return true
		case !apierrors.IsAlreadyExists(response.Err): // otherwise another run was faster
			return false
		}
	}
	return false
}

// define defines a custom kind in an API group.
func (e *Environment) define(ctx context.Context, group string) client.Response {
	definition := fixtures.CustomResourceDefinition(group)
	definition.SetLabels(map[string]string{client.RunLabel: e.options.Run})
	return e.client.Create(ctx, definition)
}
