package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/internal/cli"
)

func TestManual_EveryCommand(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", "/of/this/machine")

	g.Expect(write(dir, "v1.2.3", "2023-11-14T22:13:20Z")).To(Succeed())

	for _, name := range pages(cli.NewCommand(genericiooptions.NewTestIOStreamsDiscard())) {
		page, err := os.ReadFile(filepath.Join(dir, "man", "man1", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(page)).To(ContainSubstring(`"1" "Nov 2023" "deletion-conformance v1.2.3"`), name)
		g.Expect(string(page)).NotTo(ContainSubstring("/of/this/machine"), name)
	}
	for _, name := range []string{"runner.bash", "_runner", "runner.fish", "runner.ps1"} {
		g.Expect(os.ReadFile(filepath.Join(dir, "completions", name))).To(ContainSubstring("__complete"), name)
	}
}

// pages returns the names of the pages of a command and its subcommands, except internal ones.
func pages(command *cobra.Command) []string {
	names := []string{strings.ReplaceAll(command.CommandPath(), " ", "-") + ".1"}
	for _, below := range command.Commands() {
		if !below.Hidden {
			names = append(names, pages(below)...)
		}
	}
	return names
}
