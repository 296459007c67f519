package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestHelp_Groups(t *testing.T) {
	g := NewWithT(t)
	_, help, _ := ended(t, "--help")
	headings := regexp.MustCompile(`(?m)^(.*) [Ff]lags:$`).FindAllStringSubmatch(help, -1)
	g.Expect(headings).To(HaveLen(len(groupOrder)), "each group has a heading, and no flag is in none")
	for i, heading := range headings {
		g.Expect(strings.ToLower(heading[1])).To(Equal(groupOrder[i]))
	}
	listed := regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?--[\w-]+`).FindAllString(help, -1)
	NewCommand(genericiooptions.IOStreams{}).Flags().VisitAll(func(flag *pflag.Flag) {
		g.Expect(listed).To(ContainElement(HaveSuffix("--"+flag.Name)), "each flag is in a group")
	})
	for _, command := range []string{"explore", "compare"} {
		_, help, _ = ended(t, command, "--help")
		g.Expect(help).To(ContainSubstring("\n"+strings.ToUpper(command[:1])+command[1:]+" flags:\n"), "its own flags")
	}
}

func TestHelp_Width(t *testing.T) {
	each(NewCommand(genericiooptions.IOStreams{}), func(command *cobra.Command) {
		_, help, _ := ended(t, append(strings.Fields(command.CommandPath())[1:], "--help")...)
		for line := range strings.Lines(help) {
			if line = strings.TrimRight(line, " \n"); len(line) > helpWidth {
				t.Errorf("%s: %d columns: %s", command.CommandPath(), len(line), line)
			}
		}
	})
}

func TestGroups_OtherCommands(t *testing.T) {
	for _, arguments := range [][]string{
		{"preflight", "--report-dir", "out"}, {"preflight", "--wait-timeout", "1s"}, {"preflight", "--shard", "1/2"}, {"preflight", "--quiet"},
		{"explore", "--label-filter", "core"}, {"explore", "--procs", "2"}, {"explore", "--wait-timeout", "1s"}, {"list", "--slow"},
	} {
		code, _, failed := ended(t, arguments...)
		NewWithT(t).Expect(failed).To(Equal("unknown flag: " + arguments[1] + " (see `runner " + arguments[0] + " --help`)"))
		NewWithT(t).Expect(code).To(Equal(ExitUsage))
	}
}

// ofOthers are flags of other programs that documents name in sentences.
var ofOthers = map[string]bool{"cascade": true, "certificate": true, "client-secret": true, "prune": true, "runtime-config": true}

func TestFlags_Documented(t *testing.T) {
	g := NewWithT(t)
	known := map[string]bool{}
	each(NewCommand(genericiooptions.IOStreams{}), func(command *cobra.Command) {
		command.Flags().VisitAll(func(flag *pflag.Flag) { known[flag.Name] = true })
	})
	pages, err := filepath.Glob("../../docs/*.md")
	g.Expect(err).NotTo(HaveOccurred())
	named := regexp.MustCompile("`--([\\w-]+)|\\brunner [^`\n|]*`|(?m:^runner .*)")
	flags := regexp.MustCompile(`(?:^|[ \x60])--([\w-]+)`)
	count := 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../action.yml") {
		content, err := os.ReadFile(page)
		g.Expect(err).NotTo(HaveOccurred())
		for _, text := range named.FindAllString(string(content), -1) {
			for _, flag := range flags.FindAllStringSubmatch(text, -1) {
				count++
				g.Expect(known[flag[1]] || ofOthers[flag[1]]).To(BeTrue(), "%s: %s: there is no flag --%s", page, text, flag[1])
			}
		}
	}
	g.Expect(count).To(BeNumerically(">", 150))
}
