package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// stamped is the version that the Makefile stamps into the binary (-ldflags -X).
var stamped string

// version is the runner's version: what was stamped in, or what Go knows of the module.
func version() string {
	if stamped != "" {
		return stamped
	}
	if info, known := debug.ReadBuildInfo(); known {
		return info.Main.Version
	}
	return "unknown"
}

func newVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the runner's version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(streams.Out, "runner %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
