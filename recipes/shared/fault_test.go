package shared_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/shared"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

// eachFault runs a test with each request of a client lost in turn, or its answer.
func eachFault(t *testing.T, test func(s *scene)) {
	t.Helper()
	for _, action := range []curatortest.Action{
		curatortest.CutBefore, curatortest.CutAfter, curatortest.TruncateReply,
	} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
				inScene(t, func(s *scene) {
					fault := s.place.Faults().Add(curatortest.Rule{Action: action, Skip: k, Count: 1, MayMiss: true})
					test(s)
					hit = fault.Hits() > 0
				})
				return hit
			})
		})
	}
}

// Nobody else writes, so the node has the value exactly if it was set.
func TestTrySetValueNeverSaysNoToWhatWasSet(t *testing.T) {
	t.Parallel()
	eachFault(t, func(s *scene) {
		v := s.start(s.client, "0")
		for i := range 3 {
			before, _ := s.stored()
			value := fmt.Sprint(i + 1)
			set, err := v.TrySetValue(s.ctx, v.VersionedValue(), []byte(value))
			after, _ := s.stored()
			switch {
			case errors.Is(err, shared.ErrUncertain) && errors.Is(err, framework.ErrUncertain):
				if after != before && after != value {
					s.Errorf("%q after %q and an unknown outcome", after, before)
				}
			case err != nil:
				s.Errorf("the error is %v", err)
			case set != (after == value):
				s.Errorf("set to %q: %t, and the node has %q", value, set, after)
			}
			s.await(v, after)
		}
		s.must(v.SetValue(s.ctx, []byte("last")))
		if got := string(v.Value()); got != "last" {
			s.Errorf("the copy is %q", got)
		}
	})
}

// A server that has too much to do does not begin with a request: the policy of the client sends it again, and the last
// refusal is no uncertain outcome.
func TestSharedValueThrottledIsNotUncertain(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.client = s.newClient(s.place, framework.WithRetryPolicy(retry.NTimes(2, time.Millisecond)))
		throttled := func(times int) {
			s.place.Faults().Add(curatortest.Rule{
				Ops: []string{"setData"}, Count: times, Action: curatortest.ReplyError, Err: framework.ErrThrottledOp,
			})
		}
		v := s.start(s.client, "0")
		throttled(2)
		if set, err := v.TrySetValue(s.ctx, v.VersionedValue(), []byte("1")); !set || err != nil {
			s.Errorf("set is %t, the error is %v", set, err)
		}
		throttled(3)
		set, err := v.TrySetValue(s.ctx, v.VersionedValue(), []byte("2"))
		if set || !errors.Is(err, framework.ErrThrottledOp) || errors.Is(err, shared.ErrUncertain) {
			s.Errorf("set is %t, the error is %v", set, err)
		}
		throttled(3)
		err = v.SetValue(s.ctx, []byte("3"))
		if !errors.Is(err, framework.ErrThrottledOp) || errors.Is(err, shared.ErrUncertain) {
			s.Errorf("the error is %v", err)
		}
		if data, _ := s.stored(); data != "1" {
			s.Errorf("the node has %q", data)
		}
		s.await(v, "1")
	})
}

// A lost answer is found out if the write of another client shows that ours came too late.
func TestTrySetValueFindsOutThatItWasRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		action    curatortest.Action
		uncertain bool
	}{{curatortest.CutBefore, false}, {curatortest.CutAfter, true}} {
		t.Run(tt.action.String(), func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				// The write below may take longer than some tries with refused connections.
				s.client = s.newClient(s.place, framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
				v := s.start(s.client, "0")
				fault := s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: tt.action, Count: 1})
				suspended := s.awaitState(framework.Suspended)
				restore := s.place.Faults().RefuseConnects()
				type outcome struct {
					set bool
					err error
				}
				ended := make(chan outcome)
				go func() {
					set, err := v.TrySetValue(s.ctx, v.VersionedValue(), []byte("ours"))
					ended <- outcome{set, err}
				}()
				suspended()
				if fault.Hits() != 1 {
					t.Fatal("the request was not lost")
				}
				s.write("theirs")
				restore()
				got := <-ended
				if got.set || errors.Is(got.err, shared.ErrUncertain) != tt.uncertain || got.err != nil != tt.uncertain {
					t.Errorf("set is %t, the error is %v", got.set, got.err)
				}
				s.await(v, "theirs")
			})
		})
	}
}

// The write may have been applied to the node that was deleted since. That the new node has the next version, with
// other bytes, proves nothing.
func TestTrySetValueWithLostAnswerAndNewNodeOfNextVersionIsUncertain(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.client = s.newClient(s.place, framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
		v := s.start(s.client, "0")
		lost := s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.CutAfter, Count: 1})
		suspended := s.awaitState(framework.Suspended)
		restore := s.place.Faults().RefuseConnects()
		ended := make(chan error, 1)
		go func() {
			set, err := v.TrySetValue(s.ctx, v.VersionedValue(), []byte("ours"))
			if set {
				s.Error("it is set")
			}
			ended <- err
		}()
		suspended()
		if lost.Hits() != 1 {
			t.Fatal("the request was not lost")
		}
		if data, stat := s.stored(); data != "ours" || stat.Version != 1 {
			t.Errorf("the node has %q in version %d", data, stat.Version)
		}
		s.remove()
		s.write("theirs")
		s.write("theirs again")
		if _, stat := s.stored(); stat.Version != 1 {
			t.Errorf("the new node has version %d", stat.Version)
		}
		restore()
		s.wantError(<-ended, shared.ErrUncertain)
		s.await(v, "theirs again")
	})
}

// While the client is away another one deletes the node, and creates one of the same version: what that has written
// stays, whether the write was begun before the outage and lost, or in it.
func TestWriteOfAnOutageSparesNodeThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	writes := map[string]func(s *scene, v *shared.SharedValue) (isApplied bool, err error){
		"TrySetValue": func(s *scene, v *shared.SharedValue) (bool, error) {
			return v.TrySetValue(s.ctx, v.VersionedValue(), []byte("1"))
		},
		"Modify": func(s *scene, _ *shared.SharedValue) (bool, error) {
			n, err := shared.NewValue(s.client, path, codec.JSON[int]{}).Modify(s.ctx,
				func(_ context.Context, n int) (int, error) { return n + 1, nil })
			return n == 1, err
		},
	}
	for name, tt := range map[string]struct {
		write string
		lost  bool
	}{
		"TrySetValue lost": {"TrySetValue", true}, "TrySetValue begun in it": {"TrySetValue", false},
		"Modify lost": {"Modify", true}, "Modify begun in it": {"Modify", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				s.client = s.newClient(s.place, framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
				v := s.start(s.client, "0")
				suspended := s.awaitState(framework.Suspended)
				restore := s.place.Faults().RefuseConnects()
				if tt.lost {
					s.place.Faults().Add(curatortest.Rule{
						Ops: []string{"setData"}, Action: curatortest.CutBefore, Count: 1,
					})
				} else {
					s.place.Faults().CutAll()
					suspended()
				}
				ended := make(chan error, 1)
				go func() {
					isApplied, err := writes[tt.write](s, v)
					if isApplied {
						s.Error("the value of an earlier node is changed")
					}
					ended <- err
				}()
				if tt.lost {
					suspended()
				}
				s.remove()
				s.write("100")
				restore()
				err := <-ended
				if errors.Is(err, shared.ErrUncertain) != tt.lost || (err != nil) != tt.lost {
					t.Errorf("the error is %v", err)
				}
				want := "100"
				if tt.write == "Modify" && !tt.lost {
					want = "101"
				}
				if data, _ := s.stored(); data != want {
					t.Errorf("the node has %q", data)
				}
				s.await(v, want)
			})
		})
	}
}

func TestSetValueWithLostAnswerIsUncertain(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.start(s.newClient(s.place, noRetries), "0")
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.CutAfter, Count: 1})
		err := v.SetValue(s.ctx, []byte("1"))
		s.wantError(err, shared.ErrUncertain)
		s.wantError(err, framework.ErrConnectionLoss)
		s.await(v, "1")
	})
}

// The next try is refused, but the first one has been applied.
func TestSetWithLostAnswerAndARefusalIsUncertain(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(s *scene) error{
		"SharedValue.SetValue": func(s *scene) error {
			v := s.start(s.client, "0")
			s.loseAnswerThenRefuse("setData")
			return v.SetValue(s.ctx, []byte("1"))
		},
		"Value.Set": func(s *scene) error {
			s.loseAnswerThenRefuse("create2")
			_, err := shared.NewValue(s.client, path, codec.JSON[int]{}).Set(s.ctx, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				// Not a container, which the server removes when it is empty.
				_, err := s.writer.Create().ForPath(s.ctx, zkpath.Parent(path), nil)
				s.must(err)
				err = set(s)
				s.wantError(err, shared.ErrUncertain)
				s.wantError(err, zk.ErrNoAuth)
				if data, _ := s.stored(); data != "1" {
					s.Errorf("the node has %q", data)
				}
			})
		})
	}
}

// loseAnswerThenRefuse loses the answer to the first request with an operation and refuses the second one.
func (s *scene) loseAnswerThenRefuse(op string) {
	ops := []string{op}
	s.place.Faults().Add(curatortest.Rule{Ops: ops, Action: curatortest.CutAfter, Count: 1})
	s.place.Faults().Add(curatortest.Rule{Ops: ops, Skip: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth, Count: 1})
}

func TestValueIsModifiedOnceWhateverIsLost(t *testing.T) {
	t.Parallel()
	eachFault(t, func(s *scene) {
		v := shared.NewValue(s.client, path, codec.JSON[int]{})
		acknowledged, uncertain := 0, 0
		for range 4 {
			switch n, err := v.Modify(s.ctx, plusOne); {
			case err == nil && n < acknowledged+1:
				s.Errorf("%d after %d", n, acknowledged)
			case err == nil:
				acknowledged++
			case errors.Is(err, shared.ErrUncertain):
				uncertain++
			default:
				s.Fatal(err)
			}
		}
		n, _, err := v.Get(s.ctx)
		s.must(err)
		if n < acknowledged || n > acknowledged+uncertain || uncertain > 1 {
			s.Errorf("%d, of %d and perhaps %d", n, acknowledged, uncertain)
		}
	})
}

func plusOne(_ context.Context, n int) (int, error) { return n + 1, nil }

func TestClientsModifyTogetherUnderFaults(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"setData", "getData"}, Chance: .05, Seed: 1, Action: curatortest.CutAfter, MayMiss: true,
		})
		var (
			mu                      sync.Mutex
			acknowledged, uncertain int
			wg                      sync.WaitGroup
		)
		for _, client := range []*framework.Client{s.client, s.client, s.writer, s.newClient(s.place)} {
			v := shared.NewValue(client, path, codec.JSON[int]{})
			wg.Go(func() {
				for range 25 {
					_, err := v.Modify(s.ctx, plusOne)
					mu.Lock()
					switch {
					case err == nil:
						acknowledged++
					case errors.Is(err, shared.ErrUncertain):
						uncertain++
					default:
						s.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		n, _, err := shared.NewValue(s.writer, path, codec.JSON[int]{}).Get(s.ctx)
		s.must(err)
		if n < acknowledged || n > acknowledged+uncertain {
			t.Errorf("%d, of %d and perhaps %d", n, acknowledged, uncertain)
		}
	})
}

// The node that is there may be ours, or that of another client after ours was deleted.
func TestValueModifyCreateWithLostAnswerIsUncertain(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := shared.NewValue(s.client, path, codec.JSON[int]{})
		_, err := s.writer.Create().ForPath(s.ctx, "/limits", nil)
		s.must(err)
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.CutAfter, Count: 1})
		suspended := s.awaitState(framework.Suspended)
		restore := s.place.Faults().RefuseConnects()
		ended := make(chan error)
		go func() {
			_, err := v.Modify(s.ctx, plusOne)
			ended <- err
		}()
		suspended()
		s.remove()
		s.write("7")
		restore()
		s.wantError(<-ended, shared.ErrUncertain)
		if data, _ := s.stored(); data != "7" {
			t.Errorf("the change was applied twice: %s", data)
		}
	})
}

// The change may have been applied to the node that was deleted since. It is not applied to a new one.
func TestValueModifyWithLostAnswerAndDeletedNodeIsUncertain(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := shared.NewValue(s.client, path, codec.JSON[int]{})
		s.write("7")
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.CutAfter, Count: 1})
		suspended := s.awaitState(framework.Suspended)
		restore := s.place.Faults().RefuseConnects()
		ended := make(chan error)
		go func() {
			_, err := v.Modify(s.ctx, plusOne)
			ended <- err
		}()
		suspended()
		s.remove()
		restore()
		s.wantError(<-ended, shared.ErrUncertain)
		if stat, err := s.writer.CheckExists().ForPath(s.ctx, path); stat != nil || err != nil {
			t.Errorf("the change was applied twice: %v, %v", stat, err)
		}
	})
}
