package atomic_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

func TestLongChangesAreJavasBytes(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long()
		r, err := n.Increment(s.ctx)
		wantResult(s, r, err, applied(0, 1))
		s.wantNode([]byte{0, 0, 0, 0, 0, 0, 0, 1})
		r, err = n.Subtract(s.ctx, 3)
		wantResult(s, r, err, applied(1, -2))
		s.wantNode([]byte{255, 255, 255, 255, 255, 255, 255, 254})
		r, err = n.Decrement(s.ctx)
		wantResult(s, r, err, applied(-2, -3))
		r, err = n.Add(s.ctx, 10)
		wantResult(s, r, err, applied(-3, 7))
		r, err = n.TrySet(s.ctx, 1<<40)
		wantResult(s, r, err, applied(7, 1<<40))
		s.must(n.ForceSet(s.ctx, 5))
		s.wantNumber(5)
		if got, err := n.Get(s.ctx); err != nil || got != 5 {
			s.Errorf("got %d, %v", got, err)
		}
		stat, err := s.other.CheckExists().ForPath(s.ctx, counterPath)
		s.must(err)
		if stat.EphemeralOwner != 0 {
			s.Errorf("the node is not persistent: %+v", stat)
		}
	})
}

func TestIntegerChangesAreJavasBytes(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := atomic.NewDistributedAtomicInteger(s.client, counterPath, patient)
		r, err := n.Subtract(s.ctx, 2)
		wantResult(s, r, err, atomic.Result[int32]{Succeeded: true, Pre: 0, Post: -2})
		s.wantNode([]byte{255, 255, 255, 254})
	})
}

// kazoo's Counter writes the digits of a number.
func TestNumberTextIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"7", "12", "123", "1234", "-7", "7\n", "1.5", "12345678", "-1234567", "123456789012", "1234567.5", "1234567\n",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				s.put([]byte(text))
				n := s.long()
				_, err := n.Get(s.ctx)
				s.wantErr(err, atomic.ErrText)
				s.wantErr(err, atomic.ErrCorrupt)
				changes := map[string]func() (atomic.Result[int64], error){
					"Increment":     func() (atomic.Result[int64], error) { return n.Increment(s.ctx) },
					"Decrement":     func() (atomic.Result[int64], error) { return n.Decrement(s.ctx) },
					"CompareAndSet": func() (atomic.Result[int64], error) { return n.CompareAndSet(s.ctx, 1, 2) },
					"TrySet":        func() (atomic.Result[int64], error) { return n.TrySet(s.ctx, 1) },
					"Next": func() (atomic.Result[int64], error) {
						return atomic.NewCachedAtomicLong(n, 10).Next(s.ctx)
					},
				}
				for name, change := range changes {
					r, err := change()
					if !errors.Is(err, atomic.ErrText) || r.Succeeded || r.Pre != 0 || r.Post != 0 {
						s.Errorf("%s: %+v, %v", name, r, err)
					}
				}
				s.wantNode([]byte(text))
				java, err := s.long(atomic.WithoutTextCheck()).Get(s.ctx)
				if len(text) < 8 {
					if s.wantErr(err, atomic.ErrCorrupt); errors.Is(err, atomic.ErrText) {
						s.Errorf("without the check the error is %v", err)
					}
				} else if want := int64(binary.BigEndian.Uint64([]byte(text))); err != nil || java != want {
					s.Errorf("got %d, %v, want %d", java, err, want)
				}
				s.must(n.ForceSet(s.ctx, 5))
				s.wantNumber(5)
			})
		})
	}
}

// A number that could not be read again is not written.
func TestNumberWithBytesOfTextIsNotWritten(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		const digits = 0x31323334
		n := atomic.NewDistributedAtomicInteger(s.client, counterPath, patient)
		_, err := n.Initialize(s.ctx, digits)
		s.wantErr(err, atomic.ErrText)
		_, err = n.TrySet(s.ctx, digits)
		s.wantErr(err, atomic.ErrText)
		s.wantErr(n.ForceSet(s.ctx, digits), atomic.ErrText)
		s.must(n.ForceSet(s.ctx, 0x31323330-1))
		_, err = n.Increment(s.ctx)
		s.wantErr(err, atomic.ErrText)
		s.wantNode([]byte("123/"))
		java := atomic.NewDistributedAtomicInteger(s.client, counterPath, patient, atomic.WithoutTextCheck())
		r, err := java.Increment(s.ctx)
		wantResult(s, r, err, atomic.Result[int32]{Succeeded: true, Pre: 0x31323330 - 1, Post: 0x31323330})
		s.wantNode([]byte("1230"))
	})
}

func TestNumberOfBytesThatAreNoNumber(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		data []byte
		want int64
		err  error
	}{
		{data: []byte{}, want: 0},
		{data: []byte{0, 0, 0, 0, 0, 0, 0, 7, 9, 9}, want: 7}, // Java ignores the rest
		{data: []byte{1, 2, 3}, err: atomic.ErrCorrupt},
		{data: []byte("1 2"), err: atomic.ErrCorrupt},
		{data: []byte("\n"), err: atomic.ErrCorrupt},
	} {
		t.Run(fmt.Sprintf("%x", tt.data), func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				s.put(tt.data)
				n := s.long()
				got, err := n.Get(s.ctx)
				if got != tt.want {
					s.Errorf("got %d, want %d", got, tt.want)
				}
				s.wantErr(err, tt.err)
				r, err := n.Increment(s.ctx)
				if errors.Is(err, atomic.ErrText) {
					s.Errorf("the error is %v", err)
				}
				if tt.err != nil {
					s.wantErr(err, tt.err)
					_, err = n.CompareAndSet(s.ctx, 0, 1)
					s.wantErr(err, tt.err)
					s.wantNode(tt.data)
					s.must(n.ForceSet(s.ctx, 3))
					s.wantNumber(3)
					return
				}
				wantResult(s, r, err, applied(tt.want, tt.want+1))
			})
		})
	}
}

func TestNumberCompareAndSet(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long()
		r, err := n.CompareAndSet(s.ctx, 0, 1) // as in Java
		wantResult(s, r, err, atomic.Result[int64]{})
		for _, want := range []bool{true, false} {
			if made, err := n.Initialize(s.ctx, 34); err != nil || made != want {
				s.Errorf("initialized: %t, %v, want %t", made, err, want)
			}
		}
		r, err = n.CompareAndSet(s.ctx, 1, 2)
		wantResult(s, r, err, atomic.Result[int64]{Pre: 34})
		r, err = n.CompareAndSet(s.ctx, 34, 35)
		wantResult(s, r, err, applied(34, 35))
		s.put([]byte{}) // Java says false for ever
		r, err = n.CompareAndSet(s.ctx, 0, 8)
		wantResult(s, r, err, applied(0, 8))
		s.wantNumber(8)
	})
}

// A comparison with what is remembered would say no to what another client has made true.
func TestNumberCompareAndSetReadsBeforeItRefuses(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long()
		for range 3 {
			_, err := n.Increment(s.ctx)
			s.must(err)
		}
		r, err := s.otherLong().Add(s.ctx, 7)
		wantResult(s, r, err, applied(3, 10))
		r, err = n.CompareAndSet(s.ctx, 10, 11)
		wantResult(s, r, err, applied(10, 11))
	})
}

func TestNumberOverflowChangesNothing(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long()
		for from, change := range map[int64]func(context.Context) (atomic.Result[int64], error){
			math.MaxInt64: n.Increment,
			math.MinInt64: n.Decrement,
			0: func(ctx context.Context) (atomic.Result[int64], error) {
				return n.Subtract(ctx, math.MinInt64)
			},
			-1: func(ctx context.Context) (atomic.Result[int64], error) {
				return n.Add(ctx, math.MinInt64)
			},
		} {
			s.must(n.ForceSet(s.ctx, from))
			r, err := change(s.ctx)
			s.wantErr(err, atomic.ErrOverflow)
			if r.Succeeded || r.Pre != from {
				s.Errorf("from %d: %+v", from, r)
			}
			s.wantNumber(from)
		}
	})
}

func TestNumberUncontendedIncrementIsOneRequest(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long()
		for range 2 { // the first reads, the second reads and watches
			_, err := n.Increment(s.ctx)
			s.must(err)
		}
		s.requests()
		for range 10 {
			_, err := n.Increment(s.ctx)
			s.must(err)
		}
		var want []string
		for range 10 {
			want = append(want, "setData")
		}
		if diff := cmp.Diff(want, s.requests()); diff != "" {
			s.Errorf("requests (-want +got):\n%s", diff)
		}
		s.wantNumber(12)
	})
}

// The versions of a new node begin with 0 again, so that a remembered one may be that of another number.
func TestNumberOfNodeThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := s.long()
		for range 5 {
			_, err := n.Increment(s.ctx)
			s.must(err)
		}
		s.delete()
		other := s.otherLong()
		for range 5 { // as many versions
			_, err := other.Add(s.ctx, 100)
			s.must(err)
		}
		s.settle()
		r, err := n.Increment(s.ctx)
		wantResult(s, r, err, applied(500, 501))
		s.delete()
		s.settle()
		r, err = n.Increment(s.ctx)
		wantResult(s, r, err, applied(0, 1))
	})
}

// A client that is cut off does not hear of the end of the node: what it remembers from before proves nothing, though
// its watch still stands. The node that was made again has the same version.
func TestNumberOfNodeThatWasMadeAgainInOutage(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		n, other := s.long(), s.otherLong()
		for range 3 {
			_, err := n.Increment(s.ctx)
			s.must(err)
		}
		suspended := testclient.AwaitState(s.ctx, s, s.client, framework.Suspended)
		restore := s.place.Faults().RefuseConnects()
		s.place.Faults().CutAll()
		suspended()
		synctest.Wait() // its watch has the end of the connection too
		s.delete()
		for range 3 {
			_, err := other.Add(s.ctx, 100)
			s.must(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			r, err := n.Increment(s.ctx)
			wantResult(s, r, err, applied(300, 301))
		}()
		synctest.Wait() // it has decided what to send
		restore()
		<-done
		s.wantNumber(301)
	})
}

// A write is lost with its connection. When it is sent again there is another node, which has the same version.
// Receipts show that the lost one was not applied, so that it is tried again with the new number.
func TestNumberWriteSentAgainSparesNodeThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]atomic.Option{
		"without receipts": nil, "with receipts": {atomic.WithReceipts(receiptsPath)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(s *scene) {
				n, other := s.long(opts...), s.otherLong()
				defer n.Close() //nolint:errcheck // always nil
				for range 3 {
					_, err := n.Increment(s.ctx)
					s.must(err)
				}
				suspended := testclient.AwaitState(s.ctx, s, s.client, framework.Suspended)
				restore := s.place.Faults().RefuseConnects()
				s.place.Faults().Add(curatortest.Rule{
					Ops: []string{"setData", "multi"}, Path: counterPath, Count: 1, Action: curatortest.CutBefore,
				})
				done := make(chan struct{})
				last := int64(300)
				go func() {
					defer close(done)
					r, err := n.Increment(s.ctx)
					if opts == nil {
						s.wantErr(err, atomic.ErrUncertain)
						return
					}
					last++
					wantResult(s, r, err, applied(300, last))
				}()
				suspended()
				s.delete()
				for range 3 {
					_, err := other.Add(s.ctx, 100)
					s.must(err)
				}
				restore()
				<-done
				s.wantNumber(last)
				r, err := n.Increment(s.ctx)
				wantResult(s, r, err, applied(last, last+1))
			})
		})
	}
}

// That what it remembers is old is no failure of the try that the policy allows.
func TestNumberRememberedValueIsOldTriesAgainWithoutPolicy(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		n := atomic.NewDistributedAtomicLong(s.client, counterPath, retry.NTimes(0, 0))
		for i := range int64(5) {
			for range 2 { // the second from memory
				_, err := n.Increment(s.ctx)
				s.must(err)
			}
			_, err := s.otherLong().Add(s.ctx, 100)
			s.must(err)
			r, err := n.Increment(s.ctx)
			wantResult(s, r, err, applied(103*i+102, 103*i+103))
		}
	})
}

// overtaken runs change, and has another client add 100 between its read and its write.
func (s *scene) overtaken(change func()) {
	s.Helper()
	held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.HoldRequest})
	done := make(chan struct{})
	go func() { defer close(done); change() }()
	s.must(held.Wait(s.ctx))
	_, err := s.otherLong().Add(s.ctx, 100)
	s.must(err)
	held.Release()
	<-done
}

// The caller leaves while the change waits for the lock. Its place in the line goes, and nothing is counted.
func TestNumberContextEndsInLineForLock(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 5))
		n := atomic.NewDistributedAtomicLong(s.client, counterPath, retry.NTimes(0, 0),
			atomic.WithPromotedToLock(atomic.PromotedToLock{Path: "/lock"}))
		mutex := locks.NewInterProcessMutex(s.other, "/lock")
		hold, err := mutex.Acquire(s.ctx)
		s.must(err)
		waiters := func(want int) {
			testenv.Eventually(s, func() bool {
				nodes, err := mutex.ParticipantNodes(s.ctx)
				s.must(err)
				return len(nodes) == want
			}, fmt.Sprint(want, " in line"))
		}
		ctx, cancel := context.WithCancel(s.ctx)
		left := make(chan error, 1)
		s.overtaken(func() {
			go func() {
				_, err := n.Increment(ctx)
				left <- err
			}()
		})
		waiters(2)
		cancel()
		err = <-left
		s.wantErr(err, context.Canceled)
		if isUncertain(err) {
			s.Errorf("got %v", err)
		}
		waiters(1)
		s.must(hold.Release(s.ctx))
		s.wantNumber(105)
		r, err := n.Increment(s.ctx)
		wantResult(s, r, err, applied(105, 106))
	})
}

func TestNumberGivesUpWhenOthersAreFaster(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 5))
		n := atomic.NewDistributedAtomicLong(s.client, counterPath, retry.NTimes(0, 0))
		var r atomic.Result[int64]
		var err error
		s.overtaken(func() { r, err = n.Increment(s.ctx) })
		if r.Stats.OptimisticTries != 1 {
			s.Errorf("%d tries", r.Stats.OptimisticTries)
		}
		wantResult(s, r, err, atomic.Result[int64]{Pre: 5})
		s.wantNumber(105)
		s.overtaken(func() { s.must(n.ForceSet(s.ctx, 7)) })
		s.wantNumber(7)
	})
}

func TestNumberTriesAgainAsPolicySays(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 5))
		n := atomic.NewDistributedAtomicLong(s.client, counterPath, retry.NTimes(1, 70*time.Millisecond))
		var r atomic.Result[int64]
		var err error
		s.overtaken(func() { r, err = n.Increment(s.ctx) })
		if r.Stats.OptimisticTries != 2 || r.Stats.OptimisticTime < 70*time.Millisecond || r.Stats.PromotedTries != 0 {
			s.Errorf("%+v", r.Stats)
		}
		wantResult(s, r, err, applied(105, 106))
	})
}

func TestNumberPromotedToLock(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 5))
		n := atomic.NewDistributedAtomicLong(s.client, counterPath, retry.NTimes(0, 0),
			atomic.WithPromotedToLock(atomic.PromotedToLock{Path: "/lock", Timeout: time.Second}))
		mutex := locks.NewInterProcessMutex(s.other, "/lock")
		hold, err := mutex.Acquire(s.ctx)
		s.must(err)
		var r atomic.Result[int64]
		s.overtaken(func() { r, err = n.Increment(s.ctx) })
		if r.Stats.PromotedTries != 0 || r.Stats.PromotedTime < time.Second {
			s.Errorf("%+v", r.Stats)
		}
		wantResult(s, r, err, atomic.Result[int64]{Pre: 5})
		s.must(hold.Release(s.ctx))
		n = atomic.NewDistributedAtomicLong(s.client, counterPath, retry.NTimes(0, 0),
			atomic.WithPromotedToLock(atomic.PromotedToLock{Path: "/lock"})) // however long the servers take
		s.overtaken(func() { r, err = n.Increment(s.ctx) })
		if r.Stats.OptimisticTries != 1 || r.Stats.PromotedTries != 1 {
			s.Errorf("%+v", r.Stats)
		}
		wantResult(s, r, err, applied(205, 206))
		hold, err = mutex.Acquire(s.ctx) // it was released
		s.must(err)
		s.must(hold.Release(s.ctx))
	})
}

func TestNumberBadArguments(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		for name, n := range map[string]*atomic.DistributedAtomicLong{
			"path":      atomic.NewDistributedAtomicLong(s.client, "counter", patient),
			"no policy": atomic.NewDistributedAtomicLong(s.client, counterPath, nil),
			"policy":    atomic.NewDistributedAtomicLong(s.client, counterPath, retry.NTimes(-1, 0)),
			"lock":      s.long(atomic.WithPromotedToLock(atomic.PromotedToLock{})),
			"timeout":   s.long(atomic.WithPromotedToLock(atomic.PromotedToLock{Path: "/l", Timeout: -1})),
			"receipts":  s.long(atomic.WithReceipts("r")),
			"no unit":   s.long(atomic.WithPromotedToLock(atomic.PromotedToLock{Path: "/l", Timeout: 1000})),
		} {
			if _, err := n.Increment(s.ctx); err == nil {
				s.Errorf("%s: Increment has no error", name)
			} else if strings.Contains(err.Error(), "zk: ") {
				s.Errorf("%s: %q has two prefixes", name, err)
			}
			if _, err := n.Get(s.ctx); err == nil {
				s.Errorf("%s: Get has no error", name)
			}
			if err := n.Close(); err == nil {
				s.Errorf("%s: Close has no error", name)
			}
		}
	})
}

func TestNumberPolicyThatPanicsIsError(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		for _, broken := range []func(){func() { panic("broken") }, runtime.Goexit} {
			n := atomic.NewDistributedAtomicLong(s.client, counterPath, retry.Func(func() backoff.BackOff {
				broken()
				return nil
			}))
			s.must(n.ForceSet(s.ctx, 1))
			s.overtaken(func() {
				if _, err := n.Increment(s.ctx); err == nil {
					s.Error("no error")
				}
			})
			r, err := n.Increment(s.ctx)
			wantResult(s, r, err, applied(101, 102))
		}
	})
}
