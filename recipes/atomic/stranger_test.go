package atomic_test

import (
	"encoding/binary"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/recipes/locks"
)

// Another client changes, deletes or creates the node before each request in turn. Each change continues from the
// number before it, or from what the other has left.
func TestNumberNodeOfStrangerAtEachRequest(t *testing.T) {
	t.Parallel()
	hundred := binary.BigEndian.AppendUint64(nil, 100)
	for name, tt := range map[string]struct {
		before []byte // nil: there is no node
		act    func(s *scene)
		left   int64
	}{
		"changed": {before: []byte{}, act: func(s *scene) { s.put(hundred) }, left: 100},
		"emptied": {before: hundred, act: func(s *scene) { s.put([]byte{}) }, left: 0},
		"created": {act: func(s *scene) { s.put(hundred) }, left: 100},
		"deleted": {before: hundred, act: func(s *scene) {
			err := s.other.Delete().Quietly().ForPath(s.ctx, counterPath)
			s.must(err)
		}, left: 0},
		"deleted with its parents": {act: func(s *scene) {
			s.must(s.other.Delete().Quietly().DeletingChildrenIfNeeded().ForPath(s.ctx, "/counters"))
		}, left: 0},
	} {
		for kind, opts := range map[string][]atomic.Option{"plain": nil, "receipts": {atomic.WithReceipts("/receipts")}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
					t.Helper()
					inScene(t, func(s *scene) {
						if tt.before != nil {
							s.put(tt.before)
						}
						held := s.place.Faults().Add(curatortest.Rule{
							Skip: k, Count: 1, Action: curatortest.HoldRequest, MayMiss: true,
						})
						over, acted := make(chan struct{}), make(chan struct{})
						go func() {
							defer close(acted)
							select {
							case <-waited(s, held):
								tt.act(s)
								held.Release()
							case <-over:
							}
						}()
						n := s.long(opts...)
						before := int64(0)
						if len(tt.before) > 0 {
							before = 100
						}
						for range 4 {
							r, err := n.Increment(s.ctx)
							if err != nil || !r.Succeeded || r.Pre != before && r.Pre != tt.left || r.Post != r.Pre+1 {
								s.Errorf("got %+v, %v after %d", r, err, before)
							}
							before = r.Post
						}
						if hit = held.Hits() > 0; hit {
							<-acted
						}
						close(over)
						<-acted
						got, err := s.otherLong().Get(s.ctx)
						s.must(err)
						if got != before && got != tt.left { // the other may be last
							s.Errorf("the number is %d, and the last change has left %d", got, before)
						}
					})
					return hit
				})
			})
		}
	}
}

func TestNumberOfNodeThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		_, err := s.other.Create().WithACL(zk.DigestACL(zk.PermAll, "u", "p")...).ForPath(s.ctx, "/secret", nil)
		s.must(err)
		n := atomic.NewDistributedAtomicLong(s.client, "/secret", patient)
		_, err = n.Get(s.ctx)
		s.wantErr(err, zk.ErrNoAuth)
		_, err = n.Increment(s.ctx)
		s.wantErr(err, zk.ErrNoAuth)
		s.wantErr(n.ForceSet(s.ctx, 1), zk.ErrNoAuth)
		if isUncertain(err) {
			s.Errorf("got %v", err)
		}
	})
}

// A fenced client counts as long as it holds the lock.
func TestNumberOfFencedClient(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]atomic.Option{"plain": nil, "receipts": {atomic.WithReceipts(receiptsPath)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				mutex := locks.NewInterProcessMutex(s.client, "/lock")
				hold, err := mutex.Acquire(s.ctx)
				s.must(err)
				n := atomic.NewDistributedAtomicLong(hold.Client(), counterPath, patient, opts...)
				for i := range int64(3) {
					r, err := n.Increment(s.ctx)
					wantResult(s, r, err, applied(i, i+1))
				}
				cut := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutBefore})
				r, err := n.Increment(s.ctx) // it is sent again, though the client does not retry it
				wantResult(s, r, err, applied(3, 4))
				s.must(cut.Wait(s.ctx))
				s.must(s.other.Delete().ForPath(s.ctx, hold.Path()))
				_, err = n.Increment(s.ctx)
				s.wantErr(err, locks.ErrLockLost)
				if isUncertain(err) {
					s.Errorf("got %v", err)
				}
				s.wantNumber(4)
				s.must(hold.Release(s.ctx))
			})
		})
	}
}

// The session ends while the client has no connection. The receipt goes with it, but nothing is counted twice.
func TestNumberSessionEndsBeforeOutcomeIsFound(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]atomic.Option{"plain": nil, "receipts": {atomic.WithReceipts(receiptsPath)}} {
		for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
			t.Run(name+", "+action.String(), func(t *testing.T) {
				t.Parallel()
				inScene(t, func(s *scene) {
					n := s.long(opts...)
					_, err := n.Increment(s.ctx)
					s.must(err)
					cut := s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData", "multi"}, Count: 1, Action: action})
					held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.HoldRequest})
					var y tally
					done := make(chan struct{})
					session := s.client.SessionID()
					go func() {
						defer close(done)
						r, err := n.Increment(s.ctx)
						y.count(s, r, err)
					}()
					s.must(cut.Wait(s.ctx))
					s.expire(session)
					held.Release()
					<-done
					if y.uncertain == 0 && action == curatortest.CutAfter {
						s.Errorf("nothing shows that it was counted: %+v", y)
					}
					if y.uncertain > 0 && action == curatortest.CutBefore {
						s.Errorf("the node shows that it was not counted: %+v", y)
					}
					got, err := s.otherLong().Get(s.ctx)
					s.must(err)
					y.acknowledged++
					y.check(s, got)
					r, err := n.Increment(s.ctx)
					wantResult(s, r, err, applied(got, got+1))
				})
			})
		}
	}
}

// expire ends a session on the servers.
func (s *scene) expire(session int64) {
	s.Helper()
	if server, ok := s.place.(interface{ ExpireSession(int64) error }); ok {
		s.must(server.ExpireSession(session))
		return
	}
	s.must(testenv.Server(s).ExpireSession(session))
}

// The nodes of the namespace and of the path are containers, which a server of ZooKeeper 3.10 removes if they are never
// used.
func TestNumberThatWasNotUsedForLong(t *testing.T) {
	t.Parallel()
	testenv.WithoutUnusedContainers(t, func(t *testing.T, place testenv.Place, idle func()) {
		s := &scene{TB: t, ctx: testenv.Context(t), place: place}
		s.client = testclient.Connect(t, place.Addr(),
			framework.WithDialer(place.DialContext), framework.WithNamespace("team/app"))
		s.must(s.client.CreateContainers(s.ctx, "/counters"))
		idle()
		idle()
		n, receipted := s.long(), atomic.NewDistributedAtomicLong(s.client, "/a/b/c", patient, atomic.WithReceipts("/r/s"))
		for i := range int64(3) {
			s.ctx = testenv.Context(t) // the pauses are longer than that of a test
			r, err := n.Increment(s.ctx)
			wantResult(s, r, err, applied(i, i+1))
			r, err = receipted.Increment(s.ctx)
			wantResult(s, r, err, applied(i, i+1))
			s.must(receipted.Close())
			idle()
		}
	})
}
