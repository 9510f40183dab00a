package lineup

import (
	"sync"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
)

// RefusingClient returns a function that returns a client of which every operation fails with err. It connects to
// nothing, and it can be neither started nor closed. It is for the methods of a nil hold.
func RefusingClient(err error) func() *framework.Client {
	return sync.OnceValue(func() *framework.Client {
		refuse := hook.Refuse(err).(framework.Option)
		client, _ := framework.New("none", refuse, framework.WithEnsembleTracker(false)) // the arguments are valid
		return client.UsingNamespace("")
	})
}
