package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kubebuild"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// findKubectl finds the kubectl that was named; or else, where something that was chosen needs one, the one that belongs to
// the embedded Kubernetes, which is built if need be, or the one in PATH. Only one that was named must be there.
func (f *runFlags) findKubectl(ctx context.Context, chosen plan.Plan) error {
	file := f.kubectl
	switch {
	case file != "":
	case !wants(chosen, v1alpha1.Kubectl):
		f.settings.Kubectl.Absent = "nothing in this run needs it, so none was looked for"
		return nil
	case f.provider == providerLocal:
		dir, err := f.local.binaries()
		if err != nil {
			return usage(err)
		}
		if file, err = kubebuild.Kubectl(ctx, dir, f.streams.ErrOut); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			f.settings.Kubectl.Absent = inOneLine(err) + "; name a kubectl with --kubectl FILE"
			return nil
		}
	}
	found, err := session.FindKubectl(ctx, file)
	switch {
	case err != nil && f.kubectl != "":
		return usage(fmt.Errorf("%w: --kubectl takes the FILE of a kubectl that runs on this machine", err))
	case err != nil:
		found.Absent = inOneLine(err)
	}
	f.settings.Kubectl = found
	return nil
}

// inOneLine is what an error says, which may end with the last lines of a build, in one line.
func inOneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
