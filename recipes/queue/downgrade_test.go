package queue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// onADowngradedServer runs a test on servers that become ones before 3.6 with its call of downgrade, which returns when
// the client does nothing more.
func onADowngradedServer(
	t *testing.T, test func(t *testing.T, place testenv.Place, chroot string, downgrade func()),
) {
	t.Helper()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		faults := place.Faults()
		test(t, place, chroot, func() {
			awaitSilence(t, faults)
			faults.ResetTrace()
			testenv.Downgrade(faults)
			awaitSilence(t, faults)
		})
		if n := countOf(faults, "connect"); n > maxConnects {
			t.Errorf("%d connections\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
	})
}

// maxConnects bounds the connections after a downgrade: two clients lose theirs, and each loses two more by requests
// that the server does not know, or three with a lock path.
const maxConnects = 8

func TestQueueOnDowngradedServerGoesOn(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		onADowngradedServer(t, func(t *testing.T, place testenv.Place, chroot string, downgrade func()) {
			got := newBasket(t)
			start(t, built(mode(builder(t, clientAt(t, place, chroot), got.consume)).BuildQueue()))
			producer := start(t, built(mode(builder(t, clientAt(t, place, chroot), nil)).BuildQueue()))
			putAll(t, producer, "before")
			got.await(1)
			downgrade()
			for i, item := range numbered(5) {
				putAll(t, producer, item)
				if diff := cmp.Diff(append([]string{"before"}, numbered(5)[:i+1]...), got.await(i+2)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				awaitSilence(t, place.Faults())
			}
		})
	})
}

// A put that waits for room on a persistent watch.
func TestBlockedPutOnDowngradedServerGoesOn(t *testing.T) {
	t.Parallel()
	onADowngradedServer(t, func(t *testing.T, place testenv.Place, chroot string, downgrade func()) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		fillUp(t, other, 3)
		q := start(t, built(builder(t, client, nil).MaxItems(3).BuildQueue()))
		put := make(chan error, 1)
		go func() { put <- q.Put(ctx, "a") }()
		awaitWatch(t, place.Faults(), "addWatch")
		downgrade()
		select {
		case err := <-put:
			t.Fatalf("put to a full queue: %v", err)
		case <-time.After(time.Second):
		}
		removeFirst(t, other, 1)
		must(t, <-put)
	})
}
