package cli

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
)

// kubectlOfEmbedded finds the kubectl of the embedded Kubernetes and builds it if necessary, or returns why there is none. It uses the one
// in PATH if the given binaries include none.
func (f *runFlags) kubectlOfEmbedded(ctx context.Context) (session.Kubectl, error) {
	kubernetes, err := f.embedded.binaries(ctx, f.streams.ErrOut, false)
	name := string(v1alpha1.Kubectl)
	file := ""
	switch {
	case err != nil:
		return session.Kubectl{}, usage(err)
	case !kubernetes.given:
		file, err = binaries.Kubectl(ctx, kubernetes.dir, f.streams.ErrOut)
	case !errors.Is(kubernetes.check(name), fs.ErrNotExist):
		file = filepath.Join(kubernetes.dir, name)
	}
	if ctx.Err() != nil {
		return session.Kubectl{}, ctx.Err()
	}
	if err != nil {
		return session.Kubectl{Absent: report.Joined(err.Error()) + "; name a kubectl with --kubectl FILE"}, nil
	}
	found, _ := session.FindKubectl(ctx, file) // Absent contains the error
	return found, nil
}
