package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// newRelayCommand returns the command of the pod that --webhook-in-cluster creates. Users do not call it.
func newRelayCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "relay",
		Short:  "Receive requests of an API server and pass them on to the runner",
		Hidden: true,
		Args:   noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			token := os.Getenv(session.RelayTokenVariable)
			if token == "" {
				return usage(errors.New("only the pod of --webhook-in-cluster runs a relay: " + session.RelayTokenVariable + " is not set"))
			}
			return exitWith(ExitRunError, session.Relay(command.Context(), token))
		},
	}
}
