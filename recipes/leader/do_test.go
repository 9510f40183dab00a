package leader_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/retry"
)

func TestDoLeadsWhileFunctionRuns(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	failed := errors.New("on purpose")
	type key struct{}
	var late *leader.Leadership
	err := leader.Do(context.WithValue(ctx, key{}, "value"), client, electionPath, func(work context.Context) error {
		l := leader.LeadershipOf(work)
		if l == nil || work.Value(key{}) != "value" || l.Context().Err() != nil {
			t.Error("the context of the function has no leadership, or not the values of the caller")
			return nil
		}
		late = l
		all, err := leader.NewLeaderSelector(client, electionPath, nil).Participants(ctx)
		if err != nil || len(all) != 1 || all[0] != (leader.Participant{ID: "host-7", IsLeader: true}) {
			t.Errorf("participants %+v, %v", all, err)
		}
		_, err = l.Client().Create().ForPath(work, "/plan", nil)
		must(t, err)
		return failed
	}, leader.WithID("host-7"))
	if err != failed {
		t.Errorf("error is %v", err)
	}
	awaitNoNode(t, connect)
	if _, err := late.Client().SetData().ForPath(ctx, "/plan", nil); !errors.Is(err, leader.ErrLeadershipLost) {
		t.Errorf("a late write: %v", err)
	}
}

func TestDoLeadershipLostReturnsErrLeadershipLost(t *testing.T) {
	failed := errors.New("on purpose")
	for name, lose := range map[string]func(t *testing.T, client *framework.Client, l *leader.Leadership){
		"session": func(t *testing.T, client *framework.Client, _ *leader.Leadership) {
			t.Helper()
			must(t, testenv.Server(t).ExpireSession(client.SessionID()))
		},
		"node": func(t *testing.T, client *framework.Client, l *leader.Leadership) {
			t.Helper()
			must(t, client.Delete().ForPath(testenv.Context(t), l.Path()))
		},
	} {
		for _, want := range []error{nil, failed, leader.ErrLeadershipLost} {
			t.Run(name, func(t *testing.T) {
				connect := testenv.ConnectString(t)
				client := newClient(t, connect)
				err := leader.Do(testenv.Context(t), client, electionPath, func(work context.Context) error {
					lose(t, client, leader.LeadershipOf(work))
					<-work.Done()
					if !errors.Is(context.Cause(work), leader.ErrLeadershipLost) {
						t.Errorf("the cause is %v", context.Cause(work))
					}
					return want
				})
				if !errors.Is(err, leader.ErrLeadershipLost) || want != nil && !errors.Is(err, want) {
					t.Errorf("the function returns %v, Do %v", want, err)
				}
				if want == leader.ErrLeadershipLost && err != want {
					t.Errorf("reported twice: %v", err)
				}
				awaitNoNode(t, connect)
			})
		}
	}
}

func TestDoContextEndsWhileWaitingLeavesNoNode(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	err := leader.Do(testenv.Context(t), client, electionPath, func(work context.Context) error {
		ctx, cancel := context.WithCancel(work)
		ended := make(chan error, 1)
		go func() {
			ended <- leader.Do(ctx, client, electionPath, func(context.Context) error {
				t.Error("two lead")
				return nil
			})
		}()
		testenv.Eventually(t, func() bool {
			all, err := leader.NewLeaderSelector(client, electionPath, nil).Participants(work)
			return err == nil && len(all) == 2
		}, "it waits")
		cancel()
		if err := receive(t, ended, "its end"); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		return nil
	})
	must(t, err)
	awaitNoNode(t, connect)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := leader.Do(ctx, client, electionPath, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestDoContextEndsWhileLeadingEndsWork(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	err := leader.Do(ctx, client, electionPath, func(work context.Context) error {
		cancel()
		<-work.Done()
		// The last result is still written as the leader.
		_, err := leader.LeadershipOf(work).Client().Create().ForPath(context.WithoutCancel(work), "/last", nil)
		must(t, err)
		return work.Err()
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, leader.ErrLeadershipLost) {
		t.Errorf("error is %v", err)
	}
	awaitNoNode(t, connect)
}

// The end of the caller's context does not hide the loss: the last writes may be refused.
func TestDoLeadershipLostAfterEndOfContextReturnsErrLeadershipLost(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	err := leader.Do(ctx, client, electionPath, func(work context.Context) error {
		cancel()
		<-work.Done()
		l := leader.LeadershipOf(work)
		must(t, client.Delete().ForPath(context.WithoutCancel(work), l.Path()))
		_, err := l.Client().Create().ForPath(context.WithoutCancel(work), "/last", nil)
		if !errors.Is(err, leader.ErrLeadershipLost) {
			t.Errorf("error of a write is %v", err)
		}
		testenv.Eventually(t, func() bool {
			_, err := l.Client().Create().ForPath(context.WithoutCancel(work), "/last", nil)
			return errors.Is(err, leader.ErrLeadershipLost) && !strings.Contains(err.Error(), "fence") // it is not sent
		}, "it has heard of the end")
		return nil
	})
	if !errors.Is(err, leader.ErrLeadershipLost) {
		t.Errorf("error is %v", err)
	}
}

func TestDoClientClosedReturnsErrClosed(t *testing.T) {
	failed := errors.New("on purpose")
	for _, want := range []error{nil, failed, framework.ErrClosed} {
		client := newClient(t, testenv.ConnectString(t))
		waiting := make(chan error, 1)
		err := leader.Do(testenv.Context(t), client, electionPath, func(work context.Context) error {
			go func() {
				waiting <- leader.Do(context.WithoutCancel(work), client, electionPath, func(context.Context) error {
					t.Error("two lead")
					return nil
				})
			}()
			testenv.Eventually(t, func() bool {
				all, err := leader.NewLeaderSelector(client, electionPath, nil).Participants(work)
				return err == nil && len(all) == 2
			}, "another one waits")
			must(t, client.Close())
			<-work.Done()
			return want
		})
		if !errors.Is(err, framework.ErrClosed) || !errors.Is(err, leader.ErrLeadershipLost) ||
			want != nil && !errors.Is(err, want) {
			t.Errorf("the function returns %v, Do %v", want, err)
		}
		if err := receive(t, waiting, "the end of the wait"); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("error of the wait is %v", err)
		}
	}
}

func TestDoLeavesNoGoroutine(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	for _, end := range []error{nil, errors.New("on purpose")} {
		_ = leader.Do(testenv.Context(t), client, electionPath, func(context.Context) error { return end })
		ctx, cancel := context.WithCancel(testenv.Context(t))
		_ = leader.Do(ctx, client, electionPath, func(work context.Context) error {
			cancel()
			<-work.Done()
			return end
		})
	}
	testenv.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		all := string(stacks[:runtime.Stack(stacks, true)])
		return !strings.Contains(all, "/recipes/leader.(") && !strings.Contains(all, "/internal/waitqueue.")
	}, "nothing of an election is left")
}

// A client that lives on keeps nothing of a function that has returned.
func TestDoLeavesNothingInItsClient(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	released := make(chan struct{})
	func() {
		result := new(int)
		runtime.AddCleanup(result, func(released chan struct{}) { close(released) }, released)
		testclient.Must(t, leader.Do(testenv.Context(t), client, electionPath, func(context.Context) error {
			*result++
			return nil
		}))
	}()
	testenv.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-released:
			return true
		default:
			return false
		}
	}, "the function is released")
}

func TestDoPanicGivesUpLeadership(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	func() {
		defer func() {
			if recover() != "on purpose" {
				t.Error("the panic does not reach the caller")
			}
		}()
		_ = leader.Do(testenv.Context(t), client, electionPath, func(context.Context) error { panic("on purpose") })
	}()
	awaitNoNode(t, connect)
}

func TestDoThatCannotTakePartReturnsError(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	work := func(context.Context) error { t.Error("it leads"); return nil }
	if err := leader.Do(testenv.Context(t), client, "no slash", work); !errors.Is(err, zk.ErrInvalidPath) {
		t.Errorf("error is %v", err)
	}
	if err := leader.Do(testenv.Context(t), client, electionPath, nil); !errors.Is(err, framework.ErrBadArguments) {
		t.Errorf("without a function the error is %v", err)
	}
	must(t, client.Close())
	if err := leader.Do(testenv.Context(t), client, electionPath, work); !errors.Is(err, framework.ErrClosed) {
		t.Errorf("error is %v", err)
	}
}

// Each request is lost in turn, or its answer. Two processes take turns, and the fence lets one write at a time.
func TestDoWithLostRequestsWritesOnceEachTurn(t *testing.T) {
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
		t.Run(action.String(), func(t *testing.T) {
			testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
				t.Helper()
				proxy, connect, direct := newProxy(t)
				one := newClient(t, connect, framework.WithRetryPolicy(retry.NTimes(100, 10*time.Millisecond)))
				two := newClient(t, direct)
				ctx := testenv.Context(t)
				_, err := two.Create().ForPath(ctx, "/sum", []byte{})
				must(t, err)
				fault := proxy.Faults().Add(curatortest.Rule{Action: action, Skip: k, Count: 1, MayMiss: true})
				written := 0
				for _, client := range []*framework.Client{one, two, one, two} {
					for done := false; !done; {
						err := leader.Do(ctx, client, electionPath, func(work context.Context) error {
							data, err := client.GetData().ForPath(work, "/sum")
							if err == nil {
								_, err = leader.LeadershipOf(work).Client().SetData().ForPath(work, "/sum", append(data, 'x'))
							}
							if err == nil || framework.MayHaveTakenEffect(err) {
								done = true
								written++
							}
							return err
						})
						ended := errors.Is(err, leader.ErrLeadershipLost) || errors.Is(err, context.Canceled)
						if err != nil && !ended && !framework.MayHaveTakenEffect(err) {
							t.Fatal(err)
						}
					}
				}
				data, err := two.GetData().ForPath(ctx, "/sum")
				if err != nil || len(data) > written || len(data) < written-1 {
					t.Errorf("%d of %d are written, %v", len(data), written, err)
				}
				return fault.Hits() > 0
			})
		})
	}
}
