package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// createdFlags are the flags of every cluster that is created for a run.
type createdFlags struct {
	set     *pflag.FlagSet
	version string
	logs    string
}

const versionFlag = "kubernetes-version"

func (f *createdFlags) addTo(groups *cliflag.NamedFlagSets) {
	set := groups.FlagSet(createdGroup)
	f.set = set
	set.StringVar(&f.version, versionFlag, os.Getenv(build.VersionVariable), "`VERSION` of Kubernetes to create, such as 1.34.4 (default: $"+build.VersionVariable+", else "+build.DefaultVersion()+", or the default of kind)")
	set.StringVar(&f.logs, "cluster-logs", "", "`DIR` for the logs of the created cluster")
}

// destroy removes a cluster, after saving its logs if requested.
func (f *createdFlags) destroy(cluster provider.Created, progress io.Writer) {
	if f.logs != "" {
		if err := cluster.ExportLogs(f.logs); err != nil {
			_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
		}
	}
	if err := cluster.Destroy(); err != nil {
		_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
	}
}
