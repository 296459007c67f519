package environment

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// A run with --no-create sends only dry-runs, in an existing namespace. It probes neither controllers nor permissions.

// CreatesNothing reports whether the run sends only dry-runs.
func (e *Environment) CreatesNothing() bool { return e.options.NoCreate }

// dryRunOnly sets up a run that sends only dry-runs.
func (e *Environment) dryRunOnly(ctx context.Context) error {
	if len(e.options.Prerequisites) > 0 {
		return fmt.Errorf("%w: --no-create rules out to create what must exist before: %s of the fixture", ErrRefused,
			client.Title(e.options.Prerequisites[0]))
	}
	if e.options.SharedNamespace == "" {
		e.options.SharedNamespace = metav1.NamespaceDefault
	}
	if err := findNamespace(ctx, e.client, e.options.SharedNamespace); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for _, need := range v1alpha1.Features {
		e.unsupported[need] = "not found out: this run creates nothing (--no-create)"
	}
	e.adaptTo(measureLatency(ctx, e.client, max(e.options.Workers, 1)))
	e.check(ctx)
	return errors.Join(e.tryFixtures(ctx), ctx.Err())
}
