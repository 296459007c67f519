// Command manual generates the manual pages and shell completions of a release from the runner's commands and flags.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/internal/cli"
)

func main() {
	version := flag.String("version", "", "`VERSION` of the runner, for the foot of the pages")
	date := flag.String("date", time.Now().Format(time.RFC3339), "`DATE` of the pages, in the form of RFC 3339")
	flag.Parse()
	if err := write(flag.Arg(0), *version, *date); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

// write fills man/man1 and completions in a directory.
func write(dir, version, date string) error {
	if dir == "" {
		return errors.New("use: manual [-version VERSION] [-date DATE] DIR")
	}
	day, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return fmt.Errorf("-date: %w", err)
	}
	for _, name := range []string{"KUBERNETES_VERSION", "KUBERNETES_SOURCE", "KUBERNETES_MIRROR", "KUBEBUILDER_ASSETS"} {
		if err := os.Unsetenv(name); err != nil { // they would be defaults of flags
			return err
		}
	}
	command := cli.NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	header := &doc.GenManHeader{
		Section: "1", Date: &day, Source: "deletion-conformance " + version, Manual: "Deletion conformance for Kubernetes",
	}
	if err := writePages(command, filepath.Join(dir, "man", "man1"), header); err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	if err := writeCompletions(command, filepath.Join(dir, "completions")); err != nil {
		return fmt.Errorf("write the completions: %w", err)
	}
	return nil
}

func writePages(command *cobra.Command, dir string, header *doc.GenManHeader) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	command.InitDefaultCompletionCmd()
	return doc.GenManTree(command, header, dir)
}

// writeCompletions writes a file for each shell, with the name that the shell expects.
func writeCompletions(command *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, generate := range map[string]func(path string) error{
		"runner.bash": func(path string) error { return command.GenBashCompletionFileV2(path, true) },
		"_runner":     command.GenZshCompletionFile,
		"runner.fish": func(path string) error { return command.GenFishCompletionFile(path, true) },
		"runner.ps1":  command.GenPowerShellCompletionFileWithDesc,
	} {
		if err := generate(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
