package builders

import (
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/opconfig"
)

func init() { //nolint:gochecknoinits // for the client and recipes: the public API does not show it
	hook.OutOfFence = exec.Unfenced
	opconfig.New = func(c *opconfig.Config) any {
		v := newView(nil, nil)
		root := newEnvironment(c, v, "", nil)
		v.byName[""] = root
		return root
	}
}
