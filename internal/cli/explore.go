package cli

import (
	"math/rand/v2"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/scenarios"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

func newExploreCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags, exploration := newRunFlags(streams), run.NewExploration()
	command := &cobra.Command{
		Use:   "explore",
		Short: "Check random histories against a model of deletion",
		Long: `Explore lets concurrent clients create, read, change and delete a few objects at random, with watches running
throughout, and checks everything that they see against a model: one order of the requests on an object must explain every
response, and watches and lists must show that order. ` + scenarios.Help() + `

It ends when the time is over, or when a promise is broken. It then searches for the fewest operations that break it
again, and writes them to the report directory, where --replay finds them.

With --inject it also injects faults at random moments, which break no promise. A failure names those without which it does not happen. A
webhook reviews only objects of the run, and components are restarted only where the cluster was created for the run:

` + injection.Help() + `

It creates objects in its own namespace and deletes them at the end.

` + exitCodesUsage,
		Example: `  # Explore the cluster of a kubeconfig for 5 minutes
  runner explore --kubeconfig ~/.kube/config --report-dir out

  # Explore an embedded Kubernetes, at random or with the operations of a seed
  runner explore --provider embedded --for 1h
  runner explore --provider embedded --seed 42

  # Explore what the garbage collector does
  runner explore --kubeconfig ~/.kube/config --scenario ownership

  # Refuse some writes of controllers, or inject all faults that are possible
  runner explore --kubeconfig FILE --scenario ownership --inject refuse
  runner explore --provider embedded --scenario ownership --inject all
  # Explore an operator: what it does with the objects of its resource
  runner explore --kubeconfig ~/.kube/config --scenario operator \
    --resource widgets.example.com

  # Restart it, too
  runner explore --kubeconfig ~/.kube/config --scenario operator \
    --resource widgets.example.com --controller deploy/widget-operator \
    --controller-namespace widgets --disruptive

  # Run again what broke a promise
  runner explore --provider embedded --replay out/explore.object.one-order.json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if !command.Flags().Changed("seed") {
				exploration.Seed = rand.Uint64N(1_000_000) //nolint:gosec // not security-relevant
			}
			if err := exploration.Complete(&flags.options); err != nil {
				return usage(err)
			}
			if err := flags.complete(command); err != nil {
				return err
			}
			whole, err := flags.options.Explore(command.Context(), exploration)
			return flags.conclude(whole, err)
		},
	}
	addGroups(command, flags.addTo, flags.addControllerTo, flags.addResultsTo)
	set := command.Flags()
	set.DurationVar(&exploration.For, "for", exploration.For, "how long to explore each cluster")
	set.IntVar(&exploration.Clients, "clients", exploration.Clients, "`N` concurrent clients")
	set.DurationVar(&exploration.ReduceFor, "reduce-for", exploration.ReduceFor, "how long to search for fewer operations that break the same promise; 0 for no search")
	set.Uint64Var(&exploration.Seed, "seed", 0, "random seed `N` of the operations (default: a random one)")
	set.StringVar(&exploration.Scenario, "scenario", exploration.Scenario, "`NAME` of what to explore: "+scenarios.Topics())
	set.StringSliceVar(&exploration.Inject, "inject", nil, "`FAULT` to inject at random moments; repeatable; all for those that the scenario and the cluster permit")
	set.StringVar(&flags.options.Settings.WebhookHost, webhookHostFlag, "", webhookHostUsage)
	set.StringVar(&exploration.Replay, "replay", "", "`FILE` with operations to run instead, as explore has written it")
	return command
}
