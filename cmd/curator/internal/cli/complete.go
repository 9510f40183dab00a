package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/zkpath"
)

// completeTimeout bounds a completion: the user waits at the keyboard.
const completeTimeout = 2 * time.Second

// completePath completes the path of a node, a name at a time.
func (a *app) completePath(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	ctx := cmd.Context()
	if ctx == nil {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	if typed == "" {
		typed = "/"
	}
	parent := typed[:strings.LastIndex(typed, "/")+1]
	if parent == "" {
		return nil, directive
	}
	quiet := *a
	quiet.Stderr = io.Discard // the terminal has the line that is typed
	client, err := quiet.client(ctx)
	if err != nil {
		return nil, directive
	}
	defer func() { _ = client.Close() }() // the session ends in any case
	children, err := client.GetChildren().ForPath(ctx, zkpath.Join(parent))
	if err != nil {
		return nil, directive
	}
	var paths []string
	for _, name := range children {
		if path := parent + name; strings.HasPrefix(path, typed) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, directive
}
