package cli

import (
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/guard"
)

// guard is what curator starts itself, between itself and a command.
func (a *app) guard() *cobra.Command {
	return &cobra.Command{
		Use:    guard.Subcommand,
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := guard.Main(args); code != 0 {
				return exit(code, nil)
			}
			return nil
		},
	}
}
