package exec_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
)

// failing is an operation of which another goroutine gives the executor a state, as it ends.
type failing struct {
	delivered
	err   error
	begin func() // before its request; nil: nothing
	state func()
}

func (o *failing) Begin() {
	if o.begin != nil {
		o.begin()
	}
	o.delivered.Begin()
}

func (o *failing) Deliver()      { o.err = o.Result(); o.delivered.Deliver() }
func (o *failing) CleanUp(error) { o.state() }

// Operations that wait for a connection fail: their session has ended, or the servers refuse the credentials. The
// reader and a goroutine that submits may find that out at the same time: the last operation, which has begun before,
// is submitted while the first one ends.
func TestParkedOperationsThatFailKeepTheirOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		policy exec.Policy
		end    func(t *testing.T, f *fixture)
		want   error
	}{
		"session expired": {oneSession{everySecond(3)}, func(_ *testing.T, f *fixture) {
			f.expire()
			f.server.down.Store(false)
		}, zk.ErrSessionExpired},
		"credentials refused": {everySecond(3), func(t *testing.T, f *fixture) {
			other := start(t, everySecond(3), true)
			other.onlyPeer().send(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidAuth, Code: jute.CodeAuthFailed}))
			synctest.Wait()
			f.conn.Store(other.conn.Load())
			f.Connected()
		}, zk.ErrAuthFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, tt.policy, true)
				f.server.down.Store(true)
				f.server.cutAll()
				synctest.Wait()
				const n = 20
				order := make(chan string, n)
				var ops []*failing
				for i := range n {
					op := &failing{delivered: delivered{order: order, path: fmt.Sprintf("/%d", i)}, state: func() {
						var other sync.WaitGroup
						other.Go(f.Connected)
						other.Wait()
					}}
					op.Protocol = op
					ops = append(ops, op)
				}
				ends, last := make(chan struct{}), sync.WaitGroup{}
				ops[0].state = func() {
					close(ends)
					last.Wait()
				}
				ops[n-1].begin = func() { <-ends }
				for _, op := range ops[:n-1] {
					if err := f.Go(t.Context(), &op.Operation); err != nil {
						t.Fatal(err)
					}
				}
				last.Go(func() {
					if err := f.Go(t.Context(), &ops[n-1].Operation); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				tt.end(t, f)
				<-time.After(5 * time.Second)
				for i, op := range ops {
					if got, want := receive(t, order), fmt.Sprintf("/%d", i); got != want {
						t.Errorf("delivered %s, want %s", got, want)
					}
					if op.err != tt.want {
						t.Errorf("got %v, want %v", op.err, tt.want)
					}
				}
			})
		})
	}
}

// The connection stands, and has sent what was parked, when the servers refuse the credentials.
func TestOperationsThatWaitForARetryEndWhenTheCredentialsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5
		f := start(t, pauses{time.Hour}, true)
		f.refuse("/a", jute.CodeConnectionLoss)
		var ops []*tracked
		for range n {
			op := newTracked("/a")
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Fatal(err)
			}
			ops = append(ops, op)
		}
		synctest.Wait()
		f.onlyPeer().send(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidAuth, Code: jute.CodeAuthFailed}))
		synctest.Wait()
		f.Connected()
		synctest.Wait()
		for i, op := range ops {
			if op.ends.Load() != 1 || op.Result() != zk.ErrAuthFailed {
				t.Errorf("operation %d: %d ends, %v", i, op.ends.Load(), op.Result())
			}
		}
	})
}

// An operation whose session has ended is found by the goroutine that begins its next attempt, or by the one that
// submits it, while the one that has the next session ends the others.
func TestOperationsOfAnEndedSessionKeepTheirOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		late  int // the operation that is about to begin when its session ends
		pause time.Duration
	}{
		"one wakes up for a retry": {late: 0, pause: time.Second},
		"one is submitted":         {late: 4, pause: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 5
				f := start(t, notAcross{pauses{tt.pause, tt.pause}}, true)
				f.server.serve = func(p *peer, r *request) bool {
					p.answer(r, jute.CodeConnectionLoss)
					return true
				}
				order := make(chan string, n)
				begins, goesOn, begun := make(chan struct{}), make(chan struct{}), make(chan struct{})
				var attempts int
				for i := range n {
					op := &failing{delivered: delivered{order: order, path: fmt.Sprintf("/%d", i)}, state: func() {}}
					op.Protocol = op
					switch i {
					case tt.late:
						op.begin = func() {
							if attempts++; attempts == 2 || i > 0 {
								close(begins)
								<-goesOn
							}
						}
					case 0: // ends first, and is slow
						op.state = func() {
							close(goesOn)
							<-begun
						}
					}
					submit := func() {
						if err := f.Go(t.Context(), &op.Operation); err != nil {
							t.Error(err)
						}
					}
					if i == tt.late && i > 0 {
						go func() {
							defer close(begun)
							submit()
						}()
					} else {
						submit()
					}
					<-time.After(time.Millisecond)
				}
				<-begins
				f.replaceSession(nil)
				if tt.late == 0 {
					close(goesOn)
				}
				for i := range n {
					if got, want := receive(t, order), fmt.Sprintf("/%d", i); got != want {
						t.Errorf("delivered %s, want %s", got, want)
					}
				}
			})
		})
	}
}
