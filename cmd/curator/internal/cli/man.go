package cli

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages of this program",
		Long:    `Man writes a page for each subcommand into a directory, which it creates.`,
		Example: `  curator man ~/.local/share/man/man1 && man curator-lock`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			cmd.Root().DisableAutoGenTag = true // it has the date
			header := &doc.GenManHeader{Section: "1", Source: "Curator for Go", Manual: "Curator for Go"}
			return doc.GenManTree(cmd.Root(), header, args[0])
		},
	}
}
