package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// stamped is the version that the Makefile stamps into the binary (-ldflags -X).
var stamped string

// version is the runner's version: the stamped one, or that of the module.
func version() string {
	if stamped != "" {
		return stamped
	}
	if info, known := debug.ReadBuildInfo(); known {
		return info.Main.Version
	}
	return "unknown"
}

// builtFrom returns the commit of the source as ", commit 1a2b3c", if Go has recorded it: for a binary that was built in a clone, or
// installed from the module proxy at a commit without a tag. The version of a release contains its tag; Go's checksum database ensures that
// it is the same for all.
func builtFrom(info *debug.BuildInfo) string {
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return ", commit " + setting.Value
		}
	}
	if revision, err := module.PseudoVersionRev(info.Main.Version); err == nil {
		return ", commit " + revision
	}
	if info.Main.Sum != "" {
		return ", sum " + info.Main.Sum
	}
	return ""
}

func newVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the runner's version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			from := ""
			if info, known := debug.ReadBuildInfo(); known {
				from = builtFrom(info)
			}
			_, err := fmt.Fprintf(streams.Out, "runner %s (%s, %s/%s%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, from)
			return err
		},
	}
}
