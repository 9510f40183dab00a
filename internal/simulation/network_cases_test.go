package simulation_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// dialed returns a link to a server and a connection with one request and no answer yet.
func dialed(t *testing.T) (*link, net.Conn) {
	t.Helper()
	l := newLink(curatortest.NewServerT(t, curatortest.WithoutPort()), 1)
	t.Cleanup(l.close)
	c, err := l.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte("ruok")); err != nil {
		t.Fatal(err)
	}
	return l, c
}

func TestLinkTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, c := dialed(t)
		answer := make([]byte, 8)
		if n, err := c.Read(answer); err != nil || string(answer[:n]) != "imok" {
			t.Errorf("answer %q, %v", answer[:n], err)
		}
		if took := time.Since(began); took < 800*time.Microsecond || took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestBlockedLinkLosesNothing(t *testing.T) {
	for _, d := range []curatortest.Direction{curatortest.ToServer, curatortest.ToClient, curatortest.Both} {
		synctest.Test(t, func(t *testing.T) {
			l, c := dialed(t)
			began := time.Now()
			unblock := l.block(d)
			time.AfterFunc(time.Hour, unblock)
			answer := make([]byte, 8)
			if n, err := c.Read(answer); err != nil || string(answer[:n]) != "imok" {
				t.Errorf("%v: answer %q, %v", d, answer[:n], err)
			}
			if time.Since(began) < time.Hour {
				t.Errorf("%v: it is not blocked", d)
			}
		})
	}
}

func TestBlockedLinkKeepsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := dialed(t)
		defer l.block(curatortest.Both)()
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.dial(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial: %v", err)
		}
	})
}
