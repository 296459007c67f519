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

// builtFrom is the commit that Go has noted in a binary that was built in a clone, as ", commit 1a2b3c"; the version of
// one that was installed from the module proxy names it itself where there was no release.
func builtFrom(settings []debug.BuildSetting) string {
	for _, setting := range settings {
		if setting.Key == "vcs.revision" {
			return ", commit " + setting.Value
		}
	}
	return ""
}

func newVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the runner's version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			commit := ""
			if info, known := debug.ReadBuildInfo(); known {
				commit = builtFrom(info.Settings)
			}
			_, err := fmt.Fprintf(streams.Out, "runner %s (%s, %s/%s%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit)
			return err
		},
	}
}
