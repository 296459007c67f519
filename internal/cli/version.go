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

// builtFrom is what Go has noted of the source, as ", commit 1a2b3c": of a binary that was built in a clone, and of one that was
// installed from the module proxy where there was no release, as its version is made of the commit then. That of a release is
// made of its tag; the module's sum, which Go's checksum database vouches for, says that it is the same for all.
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
