package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/framework/provider"
	"github.com/deletion-conformance/deletion-conformance/internal/distribution"
)

// localFlags are the flags of an embedded cluster.
type localFlags struct {
	version            string
	withoutControllers bool
	auditLog           string
	logs               string
}

// versionVariable names the environment variable with the version of the embedded Kubernetes.
const versionVariable = "KUBERNETES_VERSION"

func (f *localFlags) addTo(set *pflag.FlagSet) {
	set.StringVar(&f.version, "kubernetes-version", os.Getenv(versionVariable), "`VERSION` of the embedded Kubernetes, such as 1.34.4 (default: $"+versionVariable+", else the newest that was built)")
	set.BoolVar(&f.withoutControllers, "without-controllers", false, "make the embedded Kubernetes an API server alone")
	set.StringVar(&f.auditLog, "audit-log", "", "`FILE` for the audit log of the embedded API server")
	set.StringVar(&f.logs, "cluster-logs", "", "`FOLDER` for the logs of the embedded Kubernetes")
}

// create makes a local cluster.
func (f *localFlags) create(ctx context.Context, progress io.Writer) (*provider.Local, error) {
	binaries, err := f.binaries()
	if err != nil {
		return nil, usage(err)
	}
	var options []provider.LocalOption
	if f.withoutControllers {
		options = append(options, provider.WithoutControllers())
	}
	if f.auditLog != "" {
		options = append(options, provider.WithAuditLog(f.auditLog))
	}
	local := provider.NewLocal(binaries, options...)
	started := time.Now()
	if _, err := local.Create(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &exit{ExitUnreachable, err}
	}
	_, _ = fmt.Fprintf(progress, "embedded Kubernetes %s is up after %s\n", filepath.Base(binaries), time.Since(started).Round(100*time.Millisecond))
	return local, nil
}

// destroy removes a local cluster, after its logs were saved for those who asked for them.
func (f *localFlags) destroy(local *provider.Local, progress io.Writer) {
	if f.logs != "" {
		if err := local.ExportLogs(context.Background(), f.logs); err != nil {
			_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
		}
	}
	if err := local.Destroy(context.Background()); err != nil {
		_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
	}
}

// distributions is the folder that holds the built versions of Kubernetes: kubernetes/ beside the runner.
func distributions() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the runner's own folder: %w", err)
	}
	return filepath.Join(filepath.Dir(executable), "kubernetes"), nil
}

// binaries is the folder with the binaries of the version that was asked for, or of the newest.
func (f *localFlags) binaries() (string, error) {
	folder, err := distributions()
	if err != nil {
		return "", err
	}
	if f.version == "" {
		return distribution.Newest(folder)
	}
	version, err := distribution.ParseVersion(f.version)
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, version.Tag()), nil
}
