package locks_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// The machine is suspended for longer than the session lasts, just before the answer that grants the lock is read.
// Timers stand still meanwhile, so nothing has ended the session when the answer is there.
func TestSuspendedMachineGrantsNothing(t *testing.T) {
	for name, op := range map[string]string{"mutex": "getChildren2", "semaphore": "multi"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.InMemory())
				var ahead atomic.Int64 // of the wall clock
				wall := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
				client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
					hook.WallClock(wall).(framework.Option))
				if err := client.BlockUntilConnected(t.Context()); err != nil {
					t.Fatal(err)
				}
				before := client.Session()
				answer := server.Faults().Add(curatortest.Rule{
					Ops: []string{op, "getChildren"}, Count: 1, Action: curatortest.HoldReply,
				})
				var lock locks.InterProcessLock = locks.NewInterProcessMutex(client, lockPath)
				if name == "semaphore" {
					lock = locks.NewInterProcessSemaphoreMutex(client, lockPath)
				}
				granted := make(chan *locks.Hold, 1)
				go func() { granted <- acquire(t, testenv.Context(t), lock) }()
				if err := answer.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				ahead.Add(int64(time.Hour))
				answer.Release()
				hold := <-granted
				if hold.Context().Err() == nil && client.Session() == before {
					t.Error("granted in a session that has ended")
				}
				synctest.Wait()
				if hold.Context().Err() != nil {
					t.Error("what was granted is lost at once")
				}
			})
		})
	}
}
