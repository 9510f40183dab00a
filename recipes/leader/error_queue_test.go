package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
)

// numbered is the error of a turn.
type numbered int

func (n numbered) Error() string { return fmt.Sprintf("turn %d", int(n)) }

// An error handler blocks while a function fails again and again.
func TestErrorHandlerBlockedKeepsBoundedErrors(t *testing.T) {
	const waiting = 100
	for _, leftOut := range []int{0, 1, 2, 900} {
		t.Run(fmt.Sprintf("%d more", leftOut), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.InMemory())
				client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext))
				turns, free := 0, make(chan struct{})
				errs := make(chan error, 2*waiting)
				s := leader.NewLeaderSelector(client, electionPath, func(ctx context.Context) error {
					if turns++; turns > waiting+leftOut {
						<-ctx.Done()
						return nil
					}
					return numbered(turns)
				}, leader.WithAutoRequeue(), leader.WithOnError(func(_ context.Context, err error) {
					<-free
					errs <- err
				}))
				must(t, s.Start())
				synctest.Wait()
				if turns != waiting+leftOut+1 {
					t.Fatalf("%d turns: the handler holds them up", turns)
				}
				close(free)
				synctest.Wait()
				for i := range waiting {
					if err := <-errs; err != error(numbered(i+1)) {
						t.Fatalf("error %d is %v", i+1, err)
					}
				}
				if leftOut == 0 {
					if len(errs) > 0 {
						t.Errorf("got %v", <-errs)
					}
				} else {
					want := fmt.Sprintf("turn %d", turns-1)
					if leftOut > 1 {
						want = fmt.Sprintf("leader: %d errors before this one were left out: %s", leftOut-1, want)
					}
					err := <-errs
					if !errors.Is(err, numbered(turns-1)) || err.Error() != want || len(errs) > 0 {
						t.Errorf("got %q, want %q, and %d more", err, want, len(errs))
					}
				}
				must(t, s.Close())
			})
		})
	}
}

// What is left out is counted anew when the handler has caught up.
func TestErrorHandlerCaughtUpGetsEachError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.InMemory())
		client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		turns, next, free := 0, make(chan struct{}), make(chan struct{})
		errs := make(chan error, 1000)
		s := leader.NewLeaderSelector(client, electionPath, func(ctx context.Context) error {
			if turns++; turns > 300 {
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
		close(free)
		synctest.Wait()
		if len(errs) != 101 {
			t.Errorf("got %d errors", len(errs))
		}
		for range 2 {
			next <- struct{}{}
			synctest.Wait()
		}
		if len(errs) != 103 {
			t.Errorf("got %d errors", len(errs))
		}
		must(t, s.Close())
	})
}

// What is left out stays behind what waits: a handler that has had one error is not given a newer one before the
// others.
func TestErrorHandlerSlowGetsErrorsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.InMemory())
		client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		turns, next, free := 0, make(chan struct{}), make(chan struct{})
		errs := make(chan error, 1000)
		s := leader.NewLeaderSelector(client, electionPath, func(ctx context.Context) error {
			if turns++; turns > 101 { // one more than may wait
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
		free <- struct{}{}
		synctest.Wait()
		next <- struct{}{}
		synctest.Wait()
		close(free)
		synctest.Wait()
		if len(errs) != 101 {
			t.Errorf("got %d errors", len(errs))
		}
		for i := 1; i <= 100; i++ {
			if err := <-errs; !errors.Is(err, numbered(i)) {
				t.Errorf("error %d is %v", i, err)
			}
		}
		if err := <-errs; !errors.Is(err, numbered(102)) || !strings.Contains(err.Error(), "1 errors before this one") {
			t.Errorf("the last is %v", err)
		}
		must(t, s.Close())
	})
}
