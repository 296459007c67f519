package cli

import (
	"go/doc/comment"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
)

// The groups of flags that several commands take.
const (
	clusterGroup    = "cluster"
	selectionGroup  = "selection"
	resourceGroup   = "resource"
	objectGroup     = "object"
	runGroup        = "run"
	reportGroup     = "report"
	createdGroup    = "created cluster"
	embeddedGroup   = "embedded cluster"
	kindGroup       = "kind cluster"
	connectionGroup = "connection"
)

// groupOrder is the order of the groups in help.
var groupOrder = []string{
	clusterGroup, selectionGroup, resourceGroup, objectGroup, runGroup, reportGroup, createdGroup, embeddedGroup, kindGroup, connectionGroup,
}

// groupAnnotation is the annotation of a flag with its group. A flag without one is the command's own.
const groupAnnotation = "group"

// addGroups adds groups of flags to a command.
func addGroups(command *cobra.Command, add ...func(*cliflag.NamedFlagSets)) {
	groups := cliflag.NamedFlagSets{}
	for _, addTo := range add {
		addTo(&groups)
	}
	for name, set := range groups.FlagSets {
		set.VisitAll(func(flag *pflag.Flag) { _ = set.SetAnnotation(flag.Name, groupAnnotation, []string{name}) }) // it fails only for unknown flags
		command.Flags().AddFlagSet(set)
	}
}

// addClusters returns a function that adds the flags of clusters.
func addClusters(flags *clusters.Flags) func(*cliflag.NamedFlagSets) {
	return func(groups *cliflag.NamedFlagSets) {
		flags.AddTo(groups.FlagSet(clusterGroup), groups.FlagSet(connectionGroup))
	}
}

// groupsOf returns the flags of a command in groups, its own first.
func groupsOf(command *cobra.Command) (groups cliflag.NamedFlagSets) {
	for _, name := range append([]string{command.Name()}, groupOrder...) {
		groups.FlagSet(name)
	}
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" {
			groups.FlagSet(append(flag.Annotations[groupAnnotation], command.Name())[0]).AddFlag(flag)
		}
	})
	return groups
}

// helpWidth is the width of help in columns, which every terminal has.
const helpWidth = 80

// formatHelp makes the help of a command and its subcommands print flags in groups, as that of Kubernetes' components does. It breaks the
// lines of descriptions, which are written like doc comments.
func formatHelp(root *cobra.Command) {
	beforeFlags, _, _ := strings.Cut(root.UsageTemplate(), "{{if .HasAvailableLocalFlags}}")
	root.SetUsageTemplate(beforeFlags + "\n")
	usage := root.UsageFunc()
	root.SetUsageFunc(func(command *cobra.Command) error {
		err := usage(command)
		cliflag.PrintSections(command.OutOrStderr(), groupsOf(command), helpWidth)
		return err
	})
	printer := comment.Printer{TextWidth: helpWidth, TextCodePrefix: "  "}
	each(root, func(command *cobra.Command) {
		command.Long = string(printer.Text(new(comment.Parser).Parse(command.Long)))
	})
}

// each calls a function with a command and all its subcommands.
func each(command *cobra.Command, do func(*cobra.Command)) {
	do(command)
	for _, subcommand := range command.Commands() {
		each(subcommand, do)
	}
}
