package leader_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// numbered is the error of a turn.
type numbered int

func (n numbered) Error() string { return fmt.Sprintf("turn %d", int(n)) }

// An error handler blocks while a function fails again and again.
func TestSelectorErrorHandlerBlockedKeepsBoundedErrors(t *testing.T) {
	const waiting = 100
	for _, more := range []int{0, 1, 900} {
		t.Run(fmt.Sprintf("%d more", more), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext))
				unhandled := make(chan error, more+1)
				client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
					unhandled <- e.Err
				})
				turns, next, free := 0, make(chan struct{}), make(chan struct{})
				errs := make(chan error, 2*waiting)
				s := leader.NewLeaderSelector(client, electionPath, func(ctx context.Context) error {
					if turns++; turns > waiting+more {
						select {
						case <-next:
						case <-ctx.Done():
							return nil
						}
					}
					return numbered(turns)
				}, leader.WithAutoRequeue(), leader.WithOnError(func(_ context.Context, err error) {
					<-free
					errs <- err
				}))
				must(t, s.Start())
				synctest.Wait()
				if turns != waiting+more+1 {
					t.Fatalf("%d turns: the handler holds them up", turns)
				}
				close(free)
				synctest.Wait()
				next <- struct{}{} // the handler has caught up
				synctest.Wait()
				for i := range waiting {
					if err := <-errs; err != error(numbered(i+1)) {
						t.Fatalf("error %d is %v", i+1, err)
					}
				}
				if err := <-errs; err != error(numbered(waiting+more+1)) || len(errs) > 0 {
					t.Errorf("the last is %v, and %d more", err, len(errs))
				}
				for i := range more {
					if err := <-unhandled; !errors.Is(err, numbered(waiting+i+1)) {
						t.Fatalf("unhandled is %v", err)
					}
				}
				if len(unhandled) > 0 {
					t.Errorf("unhandled is %v, too", <-unhandled)
				}
				must(t, s.Close())
			})
		})
	}
}

func TestSelectorErrorHandlerMayClose(t *testing.T) {
	var s *leader.LeaderSelector
	closed := make(chan error, 1)
	s = leader.NewLeaderSelector(newClient(t, testenv.ConnectString(t)), electionPath,
		func(context.Context) error { return errors.New("on purpose") },
		leader.WithOnError(func(context.Context, error) { closed <- s.Close() }))
	must(t, s.Start())
	must(t, receive(t, closed, "it is closed"))
}

func TestSelectorErrorHandlerGetsErrorsInOrder(t *testing.T) {
	turn, went, received := 0, make(chan struct{}), make(chan string, 10)
	s := leader.NewLeaderSelector(newClient(t, testenv.ConnectString(t)), electionPath, func(ctx context.Context) error {
		switch turn++; turn {
		case 1:
			return errors.New("first")
		case 2:
			return errors.New("second")
		}
		close(went)
		<-ctx.Done()
		return nil
	}, leader.WithAutoRequeue(), leader.WithOnError(func(_ context.Context, err error) {
		<-went // which holds up no turn
		received <- err.Error()
	}))
	must(t, s.Start())
	for _, want := range []string{"first", "second"} {
		if got := receive(t, received, "the error"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	must(t, s.Close())
}
