package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/queue"
)

// TestQueueRequeueKilledMovesNothingTwice kills the program with a transaction on its way, which the servers get only
// when the next run is over, or whose answer is late. The next run moves what is left.
func TestQueueRequeueKilledMovesNothingTwice(t *testing.T) {
	for name, action := range map[string]curatortest.Action{
		"before": curatortest.HoldRequest, "behind": curatortest.HoldReply,
	} {
		t.Run(name, func(t *testing.T) {
			server := curatortest.NewServerT(t)
			client := testclient.Connect(t, server.ConnectString())
			want := bury(t, client, 20)
			hold := server.Faults().Add(curatortest.Rule{
				Ops: []string{"multi"}, Path: "/dead/queue-0000000007", Action: action, Count: 1,
			})
			testclient.Must(t, hold.Err())
			environ := []string{"CURATOR_CONNECT=" + server.ConnectString()}
			args := strings.Fields("queue requeue /dead /q --all --locks /locks")
			p := launch(t, environ, "", args...)
			testclient.Must(t, hold.Wait(testenv.Context(t)))
			testclient.Must(t, p.cmd.Process.Kill())
			p.wait()
			got := launch(t, environ, "", args...).result()
			hold.Release()
			if got.code != CodeOK {
				t.Errorf("the next run: %+v", got)
			}
			items := contents(t, client)
			slices.Sort(items)
			if diff := cmp.Diff(want, items); diff != "" {
				t.Errorf("in the queue (-want +got):\n%s", diff)
			}
			if left := append(children(t, client, "/dead"), children(t, client, "/locks")...); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// TestQueueRequeueSessionEnds ends the session of the program while the answer to a transaction is on its way.
func TestQueueRequeueSessionEnds(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	want := bury(t, client, 120)
	mine := server.Sessions()
	hold := server.Faults().Add(curatortest.Rule{
		Ops: []string{"multi"}, Path: "/dead/queue-0000000060", Action: curatortest.HoldReply, Count: 1,
	})
	testclient.Must(t, hold.Err())
	done := make(chan result, 1)
	go func() {
		done <- invoke(t.Context(), strings.Fields("queue requeue /dead /q --all --locks /locks -o json"),
			"CURATOR_CONNECT="+server.ConnectString())
	}()
	testclient.Must(t, hold.Wait(testenv.Context(t)))
	expireOthers(t, server, mine)
	server.Faults().CutAll()
	hold.Release()
	got := <-done
	if n := stateCounts(got.stdout); got.code != CodeOK || n["requeued"]+n["uncertain"] != 120 || n["uncertain"] == 0 {
		t.Errorf("code %d, states %v: %s", got.code, n, got.stderr)
	}
	wantMoved(t, client, want)
}

// TestQueueRequeueTwiceBesideAConsumer has two runs and a consumer that contend for the letters: each letter is in the
// queue, or is consumed, and not both.
func TestQueueRequeueTwiceBesideAConsumer(t *testing.T) {
	for name, locks := range map[string]string{"with locks": "/locks", "without locks": ""} {
		t.Run(name, func(t *testing.T) {
			environ, connect := connected(t)
			client := testclient.Connect(t, connect)
			const n = 300
			bury(t, client, n)
			args := strings.Fields("queue requeue /dead /q --all")
			if locks != "" {
				args = append(args, "--locks", locks)
			}
			var mu sync.Mutex
			got := map[string]int{}
			count := func(_ context.Context, item string) error {
				mu.Lock()
				defer mu.Unlock()
				got[item]++
				return nil
			}
			b := queue.NewBuilder(client, count, codec.Text{}, "/dead").Prefetch(0)
			if locks != "" {
				b = b.LockPath(locks)
			}
			letters, err := b.BuildQueue()
			testclient.Must(t, err)
			testclient.Must(t, letters.Start())
			var runs sync.WaitGroup
			for range 2 {
				runs.Go(func() {
					if r := invoke(t.Context(), args, environ...); r.code != CodeOK && r.code != CodeRefused { // some are held
						t.Errorf("%+v", r)
					}
				})
			}
			runs.Wait()
			testenv.Eventually(t, func() bool { return len(children(t, client, "/dead")) == 0 }, "there are no letters")
			testclient.Must(t, letters.Close())
			consumed := len(got)
			for _, data := range contents(t, client) {
				got[data[9:17]]++ // behind the version, the mark and the length
			}
			t.Logf("%d of the letters were consumed", consumed)
			want := map[string]int{}
			for i := range n {
				want[fmt.Sprintf("item-%03d", i)] = 1
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
