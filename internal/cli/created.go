package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/kubebuild"
)

// createdFlags are the flags of every cluster that is made for a run.
type createdFlags struct {
	set     *pflag.FlagSet
	version string
	logs    string
}

const versionFlag = "kubernetes-version"

func (f *createdFlags) addTo(flags *pflag.FlagSet) {
	f.set = pflag.NewFlagSet("created", pflag.ContinueOnError)
	f.set.StringVar(&f.version, versionFlag, os.Getenv(kubebuild.VersionVariable), "`VERSION` of the Kubernetes that is made, such as 1.34.4 (default: $"+kubebuild.VersionVariable+", else the newest that was built, or the one that kind brings)")
	f.set.StringVar(&f.logs, "cluster-logs", "", "`DIR` for the logs of the Kubernetes that is made")
	flags.AddFlagSet(f.set)
}

// given is one of the flags that were given; empty when none was.
func (f *createdFlags) given() string { return clusters.Given(f.set) }

// destroy removes a cluster, after its logs were saved for those who asked for them.
func (f *createdFlags) destroy(cluster support.E2EClusterProvider, progress io.Writer) {
	if f.logs != "" {
		if err := cluster.ExportLogs(context.Background(), f.logs); err != nil {
			_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
		}
	}
	if err := cluster.Destroy(context.Background()); err != nil {
		_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
	}
}
