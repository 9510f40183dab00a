package errtext_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// The servers, or a proxy, do not know containers, and end the connection behind that answer or without one. Each
// recipe makes do with persistent parents: it ends as on servers that know them.
func TestRecipeWithoutContainers(t *testing.T) {
	t.Parallel()
	for name, call := range chrootCalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want error
			for _, action := range []curatortest.Action{0, curatortest.ReplyErrorThenCut, curatortest.CutBefore} {
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					if action != 0 {
						rule := curatortest.Rule{Ops: []string{"createContainer"}, Action: action, MayMiss: true}
						if action == curatortest.ReplyErrorThenCut {
							rule.Err = framework.ErrUnimplemented
						}
						place.Faults().Add(rule)
					}
					client := testclient.ConnectAt(t, place, chroot)
					ctx, cancel := context.WithTimeout(testenv.Context(t), 20*time.Second)
					defer cancel()
					err := call(ctx, client, "/a/b")
					if action == 0 {
						want = err
					} else if fmt.Sprint(err) != fmt.Sprint(want) {
						t.Errorf("%v: %v, want %v", action, err, want)
					}
				})
			}
		})
	}
}
