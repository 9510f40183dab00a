package builders

import (
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/opconfig"
)

func init() { //nolint:gochecknoinits // for the client and recipes: the public API does not show it
	hook.OutOfFence = exec.Unfenced
	hook.WithRetries = exec.WithRetries
	hook.IsPipelineLive = exec.IsFlightLive
	hook.JoinFences = func(fences any) any { return joinFences(fences.([]TransactionOperation)...) }
	hook.NewOperations = func(config any) any {
		v := newView(nil, nil)
		root := newEnvironment(config.(*opconfig.Config), v, "", nil)
		v.byName[""] = root
		return root
	}
}
