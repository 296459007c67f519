package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// findKubectl finds the kubectl that was named; or else, where something that was chosen needs one, the one that belongs to
// the embedded Kubernetes, which is built if need be, or the one in PATH. Only one that was named must be there.
func (f *runFlags) findKubectl(ctx context.Context, chosen plan.Plan) error {
	file := f.kubectl
	switch {
	case file != "":
	case !chosen.Wants(v1alpha1.Kubectl):
		f.settings.Kubectl.Absent = session.KubectlUnwanted
		return nil
	case f.provider == providerEmbedded:
		ofLocal, absent, err := f.kubectlOfLocal(ctx)
		if err != nil || absent != "" {
			f.settings.Kubectl.Absent = absent
			return err
		}
		file = ofLocal
	}
	found, err := session.FindKubectl(ctx, file)
	if err != nil && f.kubectl != "" {
		return usage(fmt.Errorf("%w: --kubectl takes the FILE of a kubectl that runs on this machine", err))
	}
	f.settings.Kubectl = found
	return nil
}

// kubectlOfLocal is the kubectl that belongs to the embedded Kubernetes, which is built if need be, or why there is none. It
// is empty where binaries that were named have none, so that the one in PATH is taken.
func (f *runFlags) kubectlOfLocal(ctx context.Context) (file, absent string, err error) {
	binaries, err := f.embedded.binaries()
	name := string(v1alpha1.Kubectl)
	switch {
	case err != nil:
		return "", "", usage(err)
	case errors.Is(binaries.check(name), fs.ErrNotExist):
		return "", "", nil
	case binaries.foreign:
		return filepath.Join(binaries.dir, name), "", nil
	}
	file, err = build.Kubectl(ctx, binaries.dir, f.streams.ErrOut)
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	if err != nil {
		return "", report.Joined(err.Error()) + "; name a kubectl with --kubectl FILE", nil
	}
	return file, "", nil
}
