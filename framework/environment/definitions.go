package environment

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// defineCustomKinds defines the custom kind that the run's specs share, and the one that a spec deletes. Where that is not
// allowed, the specs that use them are skipped.
func (e *Environment) defineCustomKinds(ctx context.Context) {
	if !e.takeGroupDomain(ctx) { // nobody else has the one that is named after the run
		e.define(ctx, e.Session(1).CustomGroup())
	}
	e.define(ctx, e.Session(1).SpareGroup())
}

// mostDomains is how many runs on one cluster at the same time find a domain that an earlier one had.
const mostDomains = 50

// takeGroupDomain finds a domain for the run's API groups that it has for itself, and that other runs had before it or will
// have: the first of 1., 2. and so on below the harness's own in which nothing is defined. It is the run's with its first
// definition, of the custom kind that its specs share. It is false where none could be had.
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
		case !apierrors.IsAlreadyExists(response.Err): // where it does, another run was faster
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
