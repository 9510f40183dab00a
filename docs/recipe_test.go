package docs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// inBubble runs a test of docs/recipes.md in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, server *curatortest.Server, g Gathering)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, client := connect(t)
		test(t, server, Gathering{client, "/start/gate", 2})
	})
}

func arrive(t *testing.T, g Gathering, name string) {
	t.Helper()
	if err := g.Arrive(t.Context(), name); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestGatheringWaitsForAll(t *testing.T) {
	inBubble(t, func(t *testing.T, server *curatortest.Server, g Gathering) {
		arrive(t, g, "a")
		arrive(t, g, "a")
		all := make(chan error, 1)
		go func() { all <- g.Await(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-all:
			t.Fatalf("Await with one of two: %v", err)
		default:
		}
		arrive(t, g, "b")
		if err := <-all; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := server.Watches("/start/gate"); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestGatheringArrivesOnceThoughAnswerIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, server *curatortest.Server, g Gathering) {
		arrive(t, g, "b") // so that the parents exist
		server.Faults().Add(curatortest.Rule{
			Ops: []string{"create2"}, Path: "/start/gate/a", Count: 1, Action: curatortest.CutAfter,
		})
		arrive(t, g, "a")
		if names := server.Children("/start/gate"); len(names) != 2 {
			t.Errorf("the nodes are %q", names)
		}
	})
}

func TestGatheringWaitsThroughOutages(t *testing.T) {
	inBubble(t, func(t *testing.T, server *curatortest.Server, g Gathering) {
		arrive(t, g, "a")
		all := make(chan error, 1)
		go func() { all <- g.Await(t.Context()) }()
		synctest.Wait()
		server.Faults().Cut(g.client.SessionID())
		time.Sleep(time.Minute)
		if err := server.ExpireSession(g.client.SessionID()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // longer than every try of the retry policy
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		arrive(t, g, "b")
		if err := <-all; err != nil {
			t.Error(err)
		}
	})
}

func TestGatheringWaitBegunInOutageGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, server *curatortest.Server, g Gathering) {
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		all := make(chan error, 1)
		go func() { all <- g.Await(t.Context()) }()
		time.Sleep(time.Hour) // longer than every try of the retry policy
		select {
		case err := <-all:
			t.Fatalf("Await without a server: %v", err)
		default:
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		arrive(t, g, "a")
		arrive(t, g, "b")
		if err := <-all; err != nil {
			t.Error(err)
		}
	})
}

func TestGatheringEndsWithItsContextAndItsClient(t *testing.T) {
	inBubble(t, func(t *testing.T, server *curatortest.Server, g Gathering) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := g.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Await to its deadline: %v", err)
		}
		synctest.Wait()
		if n := server.Watches("/start/gate"); n != 0 {
			t.Errorf("%d watches are left", n)
		}
		all := make(chan error, 1)
		go func() { all <- g.Await(t.Context()) }()
		synctest.Wait()
		if err := g.client.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-all; !errors.Is(err, framework.ErrClosed) {
			t.Errorf("Await of a closed client: %v", err)
		}
	})
}

func TestGatheringWaitsInCallback(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *curatortest.Server, g Gathering) {
		all := make(chan error, 1)
		err := g.client.CheckExists().InBackground(func(ctx context.Context, _ callbacks.Event) { all <- g.Await(ctx) }).
			ForPath(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		arrive(t, g, "a")
		arrive(t, g, "b")
		if err := <-all; err != nil {
			t.Error(err)
		}
	})
}
