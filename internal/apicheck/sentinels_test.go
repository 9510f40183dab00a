package apicheck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/queue"
)

// TestSentinelMatchesTheGeneralOne checks that errors.Is finds the general sentinel through the special one, and not
// the other way round, and that each text begins with its package.
func TestSentinelMatchesTheGeneralOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		special, general error
		text             string
	}{
		{"cache.ErrClosed", cache.ErrClosed, framework.ErrClosed, "cache: closed"},
		{"cache.ErrStarted", cache.ErrStarted, framework.ErrStarted, "cache: already started"},
		{"cache.ErrNotStarted", cache.ErrNotStarted, framework.ErrNotStarted, "cache: not started"},
		{"leader.ErrClosed", leader.ErrClosed, framework.ErrClosed, "leader: closed"},
		{"leader.ErrStarted", leader.ErrStarted, framework.ErrStarted, "leader: already started"},
		{"leader.ErrLeadershipLost", leader.ErrLeadershipLost, locks.ErrLockLost, "leader: leadership lost"},
		{"queue.ErrClosed", queue.ErrClosed, framework.ErrClosed, "queue: closed"},
		{"queue.ErrStarted", queue.ErrStarted, framework.ErrStarted, "queue: already started"},
		{"queue.ErrNotStarted", queue.ErrNotStarted, framework.ErrNotStarted, "queue: not started"},
		{"queue.ErrUncertain", queue.ErrUncertain, framework.ErrUncertain, "queue: outcome not known"},
		{"queue.ErrLockLost", queue.ErrLockLost, locks.ErrLockLost, "queue: lock of the item lost"},
	} {
		if !errors.Is(tt.special, tt.general) || errors.Is(tt.general, tt.special) {
			t.Errorf("%s is not a special case of %q", tt.name, tt.general)
		}
		if pkg, _, _ := strings.Cut(tt.name, "."); tt.special.Error() != tt.text || !strings.HasPrefix(tt.text, pkg+": ") {
			t.Errorf("%s: text %q, want %q", tt.name, tt.special, tt.text)
		}
	}
}

// TestSentinelExportedTwiceIsOneValue checks the errors that package framework exports again.
func TestSentinelExportedTwiceIsOneValue(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]error{
		{framework.ErrNotSent, builders.ErrNotSent},
		{framework.ErrRequestTooLarge, builders.ErrRequestTooLarge},
		{framework.ErrReplyTooLarge, builders.ErrReplyTooLarge},
		{framework.ErrNoChroot, builders.ErrNoChroot},
		{framework.ErrBadArguments, builders.ErrBadArguments},
		{framework.ErrUncertain, builders.ErrUncertain},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%q and %q are two", pair[0], pair[1])
		}
	}
}
