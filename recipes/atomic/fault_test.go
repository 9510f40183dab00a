package atomic_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

func isUncertain(err error) bool { return errors.Is(err, atomic.ErrUncertain) }

// tally is what a client knows of the sum that its changes have added.
type tally struct{ acknowledged, uncertain int64 }

func (y *tally) count(s *scene, r atomic.Result[int64], err error) {
	s.Helper()
	switch {
	case isUncertain(err):
		s.wantErr(err, framework.ErrUncertain)
		y.uncertain += r.Post - r.Pre
	case err == nil && r.Succeeded:
		y.acknowledged += r.Post - r.Pre
	}
}

// check compares what clients know with the number.
func (y tally) check(s *scene, got int64) {
	s.Helper()
	if got < y.acknowledged || got > y.acknowledged+y.uncertain {
		s.Errorf("the number is %d, %d were acknowledged and %d are uncertain", got, y.acknowledged, y.uncertain)
	}
}

// A fault hits each request in turn. Between the changes, and while the client has no connection, another client
// changes the number too, by the same amount or by another.
func TestNumberFaultAtEachRequest(t *testing.T) {
	t.Parallel()
	for _, delta := range []int64{0, 1, 100} {
		for name, opts := range map[string][]atomic.Option{
			"plain": nil, "receipts": {atomic.WithReceipts(receiptsPath)},
		} {
			t.Run(fmt.Sprint(name, ", the other adds ", delta), func(t *testing.T) {
				t.Parallel()
				testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
					t.Helper()
					inScene(t, func(s *scene) {
						injection := s.place.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: true})
						y := countWithCompetitor(s, s.long(opts...), injection, delta)
						hit = injection.Hits() > 0
						provable := opts != nil || action == curatortest.CutBefore && delta != 1
						if y.uncertain > 1 || y.uncertain > 0 && provable {
							s.Errorf("%d are uncertain", y.uncertain)
						}
					})
					return hit
				})
			})
		}
	}
}

// countWithCompetitor adds 1 four times. As soon as the fault has hit, another client adds delta.
func countWithCompetitor(
	s *scene, n *atomic.DistributedAtomicLong, injection *curatortest.Injection, delta int64,
) tally {
	s.Helper()
	refusing := s.place.Faults().Add(curatortest.Rule{
		Ops: []string{"connect"}, Action: curatortest.HoldRequest, MayMiss: true,
	})
	over := make(chan struct{})
	interfered := make(chan tally, 1)
	go func() {
		var y tally
		select {
		case <-over:
		case <-waited(s, injection):
			if delta != 0 {
				r, err := s.otherLong().Add(s.ctx, delta)
				y.count(s, r, err)
			}
		}
		refusing.Release()
		interfered <- y
	}()
	var y tally
	for range 4 {
		r, err := n.Add(s.ctx, 1)
		s.mayBeUncertain(err)
		y.count(s, r, err)
	}
	close(over)
	other := <-interfered
	got, err := s.otherLong().Get(s.ctx)
	s.must(err)
	y.acknowledged += other.acknowledged
	y.check(s, got)
	return y
}

func waited(s *scene, injection *curatortest.Injection) <-chan struct{} {
	hit := make(chan struct{})
	go func() {
		if injection.Wait(s.ctx) == nil {
			close(hit)
		}
	}()
	return hit
}

func (s *scene) mayBeUncertain(err error) {
	s.Helper()
	if err != nil && !isUncertain(err) {
		s.Error(err)
	}
}

// The policy of the client gives up at once, so that the recipe finds out what has become of the write.
func TestNumberLostAnswerOfClientWithoutRetries(t *testing.T) {
	t.Parallel()
	testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
		t.Helper()
		inScene(t, func(s *scene) {
			s.client = s.connect(s.place, framework.WithRetryPolicy(retry.NTimes(0, 0)))
			injection := s.place.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: true})
			n := s.long()
			var y tally
			for range 4 {
				r, err := n.Add(s.ctx, 1)
				y.count(s, r, err)
				if err != nil && !errors.Is(err, framework.ErrConnectionLoss) {
					s.Error(err)
				}
			}
			got, err := s.otherLong().Get(s.ctx)
			s.must(err)
			y.check(s, got)
			hit = injection.Hits() > 0
		})
		return hit
	})
}

func TestNumberLostAnswerIsUncertainIfAnotherWroteTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		delta int64
		opts  []atomic.Option
		err   error
	}{
		{delta: 1, err: atomic.ErrUncertain},
		{delta: 2},
		{delta: 1, opts: []atomic.Option{atomic.WithReceipts(receiptsPath)}},
		{delta: 2, opts: []atomic.Option{atomic.WithReceipts(receiptsPath)}},
	} {
		for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
			t.Run(fmt.Sprint(tt.delta, len(tt.opts), action), func(t *testing.T) {
				t.Parallel()
				inScene(t, func(s *scene) {
					n := s.long(tt.opts...)
					_, err := n.Increment(s.ctx)
					s.must(err)
					write := []string{"setData", "multi"}
					cut := s.place.Faults().Add(curatortest.Rule{Ops: write, Count: 1, Action: action})
					held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.HoldRequest})
					type answer struct {
						r   atomic.Result[int64]
						err error
					}
					answered := make(chan answer, 1)
					go func() {
						r, err := n.Increment(s.ctx)
						answered <- answer{r, err}
					}()
					s.must(cut.Wait(s.ctx))
					other, err := s.otherLong().Add(s.ctx, tt.delta)
					s.must(err)
					held.Release()
					got := <-answered
					wasApplied := action == curatortest.CutAfter
					isNext := other.Pre == 1 // the other one has taken the place of ours
					if isNext == wasApplied {
						s.Fatalf("the other has %+v", other)
					}
					switch {
					case tt.opts != nil && wasApplied:
						wantResult(s, got.r, got.err, applied(1, 2))
					case tt.opts != nil || !wasApplied && tt.delta == 2:
						wantResult(s, got.r, got.err, applied(1+tt.delta, 2+tt.delta))
					default: // equal bytes, or a version further on
						s.wantErr(got.err, atomic.ErrUncertain)
						if got.r.Stats.OptimisticTries = 0; got.r.Pre != 1 || got.r.Post != 2 || got.r.Succeeded {
							s.Errorf("got %+v", got.r)
						}
					}
				})
			})
		}
	}
}

// The session ends before the client can find out.
func TestNumberReceiptIsLostWithSession(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long(atomic.WithReceipts(receiptsPath))
		for i := range int64(4) {
			r, err := n.Increment(s.ctx)
			wantResult(s, r, err, applied(i, i+1))
			s.must(s.client.Reset())
			s.must(s.client.BlockUntilConnected(s.ctx))
		}
		s.must(n.Close())
		r, err := n.Increment(s.ctx)
		wantResult(s, r, err, applied(4, 5))
	})
}

// What somebody does to the receipts costs a request, and never a number.
func TestNumberReceiptOfStranger(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(s *scene, path string) error{
		"deleted": func(s *scene, path string) error { return s.other.Delete().ForPath(s.ctx, path) },
		"changed": func(s *scene, path string) error {
			_, err := s.other.SetData().ForPath(s.ctx, path, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				n := s.long(atomic.WithReceipts(receiptsPath))
				for i := range int64(4) {
					r, err := n.Increment(s.ctx)
					wantResult(s, r, err, applied(i, i+1))
					names, err := s.other.GetChildren().ForPath(s.ctx, receiptsPath)
					s.must(err)
					for _, name := range names {
						s.must(disturb(s, receiptsPath+"/"+name))
					}
				}
			})
		})
	}
}

func TestNumberCloseRemovesReceiptAndWatch(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long(atomic.WithReceipts(receiptsPath))
		for range 3 {
			_, err := n.Increment(s.ctx)
			s.must(err)
		}
		s.must(n.Close())
		s.must(n.Close())
		testenv.Eventually(s, func() bool {
			names, err := s.other.GetChildren().ForPath(s.ctx, receiptsPath)
			if errors.Is(err, zk.ErrNoNode) { // the server deletes an empty container
				return true
			}
			s.must(err)
			return len(names) == 0
		}, "no receipt")
		if server, ok := s.place.(interface{ Watches(string) int }); ok {
			if server.Watches(counterPath) != 0 {
				s.Error("the watch is still there")
			}
			_, err := n.Increment(s.ctx) // it can be used again
			s.must(err)
			if server.Watches(counterPath) != 1 {
				s.Error("there is no new watch")
			}
		}
	})
}

// The servers refuse a write: nothing is counted, and the next one is not disturbed.
func TestNumberRefusedRequestIsError(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long()
		_, err := n.Increment(s.ctx)
		s.must(err)
		for _, op := range []string{"getData", "setData"} {
			s.place.Faults().Add(curatortest.Rule{
				Ops: []string{op}, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
			})
			_, err = n.Increment(s.ctx)
			s.wantErr(err, zk.ErrNoAuth)
			if isUncertain(err) {
				s.Errorf("got %v", err)
			}
		}
		r, err := n.Increment(s.ctx)
		wantResult(s, r, err, applied(1, 2))
	})
}

// The server has too much to do for longer than the policy of the client retries: a write that it did not begin with is
// not uncertain.
func TestNumberThrottledWriteIsNotUncertain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op      string
		retries int
		opts    []atomic.Option
	}{
		"set":             {"setData", 2, nil},
		"with a receipt":  {"multi", 2, []atomic.Option{atomic.WithReceipts(receiptsPath)}},
		"without retries": {"setData", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				s.client = s.connect(s.place, framework.WithRetryPolicy(retry.NTimes(tt.retries, time.Millisecond)))
				n := s.long(tt.opts...)
				_, err := n.Increment(s.ctx)
				s.must(err)
				s.place.Faults().Add(curatortest.Rule{ // all tries, then all but the last
					Ops: []string{tt.op}, Count: 1 + 2*tt.retries, Action: curatortest.ReplyError, Err: framework.ErrThrottledOp,
				})
				r, err := n.Increment(s.ctx)
				if tt.retries == 0 {
					s.wantErr(err, framework.ErrThrottledOp)
					if isUncertain(err) {
						s.Errorf("got %v", err)
					}
					r, err = n.Increment(s.ctx)
				}
				wantResult(s, r, err, applied(1, 2))
			})
		})
	}
}

// A server that never has time does not hold a call beyond its context, and the write is not applied.
func TestNumberThrottledForEverEndsWithContext(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.client = s.connect(s.place, framework.WithRetryPolicy(retry.NTimes(2, time.Millisecond)))
		n := s.long()
		_, err := n.Increment(s.ctx)
		s.must(err)
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"setData"}, Action: curatortest.ReplyError, Err: framework.ErrThrottledOp,
		})
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		_, err = n.Increment(ctx)
		s.wantErr(err, context.DeadlineExceeded)
		got, err := s.otherLong().Get(s.ctx)
		s.must(err)
		if got != 1 {
			s.Errorf("the number is %d", got)
		}
	})
}

func TestNumberOfClosedClient(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long()
		_, err := n.Increment(s.ctx)
		s.must(err)
		s.must(s.client.Close())
		_, err = n.Increment(s.ctx)
		s.wantErr(err, framework.ErrClosed)
		if isUncertain(err) {
			s.Errorf("got %v", err)
		}
	})
}

// The caller of a write gives up, so that nobody finds out its outcome. The receipt of that write is no receipt of the
// next one.
func TestNumberReceiptOfAWriteThatWasGivenUpProvesNothing(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		n := s.long(atomic.WithReceipts(receiptsPath))
		for i := range int64(2) {
			r, err := n.Add(s.ctx, 1)
			wantResult(s, r, err, applied(i, i+1))
		}
		held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldReply})
		ctx, cancel := context.WithCancel(s.ctx)
		go func() {
			defer cancel()
			s.must(held.Wait(s.ctx))
		}()
		if _, err := n.Add(ctx, 1); !isUncertain(err) {
			s.Errorf("got %v, want ErrUncertain", err)
		}
		synctest.Wait() // nobody waits for the reply any more
		held.Release()
		s.settle()

		cut := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutBefore})
		connects := s.place.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.HoldRequest})
		go func() {
			s.must(cut.Wait(s.ctx))
			_, err := s.otherLong().Add(s.ctx, 10)
			s.must(err)
			connects.Release()
		}()
		r, err := n.Add(s.ctx, 1)
		wantResult(s, r, err, applied(13, 14))
		s.wantNumber(14)
	})
}

// The create of a receipt is given up, or somebody changes the receipt: Close leaves no node.
func TestNumberReceiptsThatWereGivenUpAreDeleted(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		n := s.long(atomic.WithReceipts(receiptsPath))
		s.must(s.other.CreateContainers(s.ctx, receiptsPath))
		for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
			held := s.place.Faults().Add(curatortest.Rule{
				Ops: []string{"create2"}, Path: receiptsPath + "/*", Count: 1, Action: action,
			})
			ctx, cancel := context.WithCancel(s.ctx)
			go func() {
				defer cancel()
				s.must(held.Wait(s.ctx))
			}()
			if _, err := n.Add(ctx, 1); !errors.Is(err, context.Canceled) {
				s.Errorf("got %v", err)
			}
			synctest.Wait()
			held.Release()
			s.settle()
			synctest.Wait()
			s.wantReceipts(0)
		}
		_, err := n.Add(s.ctx, 1)
		s.must(err)
		for _, name := range s.wantReceipts(1) {
			_, err := s.other.SetData().ForPath(s.ctx, receiptsPath+"/"+name, nil)
			s.must(err)
		}
		_, err = n.Add(s.ctx, 1)
		s.must(err)
		synctest.Wait()
		s.wantReceipts(1)
		s.must(n.Close())
		synctest.Wait()
		s.wantReceipts(0)
	})
}

// wantReceipts returns the names of the receipts.
func (s *scene) wantReceipts(want int) []string {
	s.Helper()
	s.must(s.other.Sync().ForPath(s.ctx, receiptsPath))
	names, err := s.other.GetChildren().ForPath(s.ctx, receiptsPath)
	s.must(err)
	if len(names) != want {
		s.Errorf("%d receipts, not %d", len(names), want)
	}
	return names
}

// A write is still under way on an old connection when Close forgets its receipt. The next receipt proves nothing of
// it.
func TestNumberReceiptAfterCloseProvesNothingOfEarlierAttempt(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		s.client = s.connect(s.place, framework.WithRetryPolicy(retry.NTimes(0, 0)))
		n := s.long(atomic.WithReceipts(receiptsPath))
		_, err := n.Add(s.ctx, 1)
		s.must(err)
		s.must(s.otherLong().ForceSet(s.ctx, 1))
		s.settle()
		faults := s.place.Faults()
		write := faults.Add(curatortest.Rule{
			Ops: []string{"multi"}, Path: counterPath, Count: 1, Action: curatortest.HoldRequest,
		})
		receipt := faults.Add(curatortest.Rule{
			Ops: []string{"create2"}, Path: receiptsPath + "/*", Count: 1, Action: curatortest.HoldRequest,
		})
		faults.Add(curatortest.Rule{Ops: []string{"delete"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth})
		go func() {
			s.must(write.Wait(s.ctx))
			s.must(n.Close())
			s.must(s.client.Reset())
			s.must(receipt.Wait(s.ctx))
			write.Release()
			synctest.Wait()
			receipt.Release()
		}()
		r, err := n.Add(s.ctx, 1)
		s.mayBeUncertain(err)
		y := tally{acknowledged: 1}
		y.count(s, r, err)
		got, err := s.otherLong().Get(s.ctx)
		s.must(err)
		y.check(s, got)
	})
}

// A wait that ends in an outage says why there is no connection, whichever call waits and for whatever.
func TestNumberInAnOutageNamesItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
		client, err := framework.New("127.0.0.1:1", framework.WithDialer(refuse))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		defer client.Close() //nolint:errcheck // nothing is left to lose
		n := atomic.NewDistributedAtomicLong(client, counterPath, patient)
		ids := atomic.NewCachedAtomicLong(n, 10)
		value := atomic.NewDistributedAtomicValue(client, counterPath, patient)
		calls := map[string]func(ctx context.Context) error{
			"Get":        func(ctx context.Context) error { _, err := n.Get(ctx); return err },
			"Increment":  func(ctx context.Context) error { _, err := n.Increment(ctx); return err },
			"TrySet":     func(ctx context.Context) error { _, err := n.TrySet(ctx, 1); return err },
			"ForceSet":   func(ctx context.Context) error { return n.ForceSet(ctx, 1) },
			"Initialize": func(ctx context.Context) error { _, err := n.Initialize(ctx, 1); return err },
			"of a value": func(ctx context.Context) error { return value.ForceSet(ctx, []byte("x")) },
			"Next":       func(ctx context.Context) error { _, err := ids.Next(ctx); return err },
			"Next behind another": func(ctx context.Context) error {
				first := make(chan struct{})
				go func() {
					defer close(first)
					_, _ = ids.Next(ctx)
				}()
				defer func() { <-first }()
				synctest.Wait()
				short, end := context.WithTimeout(ctx, time.Second/2)
				defer end()
				_, err := ids.Next(short)
				return err
			},
		}
		ended, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		<-ended.Done()
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := call(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ECONNREFUSED) || isUncertain(err) {
				t.Errorf("%s: the error is %v", name, err)
			}
		}
		if _, err := n.Increment(ended); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("with an ended context the error is %v", err)
		}
	})
}

// The answer to the write is lost, and then there is no connection until the caller leaves.
func TestNumberUncertainInAnOutageNamesItsReason(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		n := s.long()
		s.must(n.ForceSet(s.ctx, 1))
		s.place.Faults().RefuseConnects()
		lost := s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter})
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		_, err := n.Increment(ctx)
		s.must(lost.Wait(s.ctx))
		s.wantErr(err, context.DeadlineExceeded)
		s.wantErr(err, atomic.ErrUncertain)
		s.wantErr(err, syscall.ECONNREFUSED)
	})
}
