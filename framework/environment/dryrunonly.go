package environment

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// A run may be told to create nothing (--no-create). It then asks what would happen to objects in a namespace that is there
// already, and so finds out neither what controllers do nor what its credentials would allow.

// CreatesNothing says that the run was told to create nothing.
func (e *Environment) CreatesNothing() bool { return e.options.NoCreate }

// dryRunOnly has the run use a namespace that is there, and find out how fast the server is.
func (e *Environment) dryRunOnly(ctx context.Context) error {
	if len(e.options.Prerequisites) > 0 {
		return fmt.Errorf("%w: --no-create rules out to create what must exist before: %s of the fixture", ErrRefused,
			client.Title(e.options.Prerequisites[0]))
	}
	if e.options.SharedNamespace == "" {
		e.options.SharedNamespace = metav1.NamespaceDefault
	}
	for _, need := range v1alpha1.Needs {
		e.unsupported[need] = "not found out: this run creates nothing (--no-create)"
	}
	e.measureReads(ctx)
	e.check(ctx)
	return errors.Join(e.tryFixtures(ctx), ctx.Err())
}
