package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

// A server, or a proxy, hangs up on a write, as on one that is larger than it reads. The answers to others take a few
// milliseconds. They come nevertheless.
func TestHangUpAtOneRequestLeavesTheOthers(t *testing.T) {
	for name, policy := range map[string]retry.Policy{
		"forever, 1 s":          retry.Forever(time.Second),
		"forever, 10 s":         retry.Forever(10 * time.Second),
		"exponential, 29 times": retry.ExponentialBackoff(100*time.Millisecond, 29),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				c := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext),
					framework.WithRetryPolicy(policy), framework.WithSessionTimeout(10*time.Second))
				testclient.Must(t, c.EnsurePath(t.Context(), "/ok"))
				testclient.Must(t, c.EnsurePath(t.Context(), "/bad"))
				server.Faults().Add(curatortest.Rule{
					Ops: []string{"setData"}, Path: "/ok", Action: curatortest.DelayReply, Delay: 5 * time.Millisecond,
				})
				server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Path: "/bad", Action: curatortest.CutBefore})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for ctx.Err() == nil {
						_, _ = c.SetData().ForPath(ctx, "/bad", nil)
						<-time.After(time.Second)
					}
				}()
				<-time.After(100 * time.Millisecond)
				served := 0
				for ctx.Err() == nil {
					if _, err := c.SetData().ForPath(ctx, "/ok", nil); err == nil {
						served++
					}
					<-time.After(100 * time.Millisecond)
				}
				<-ended
				if served < 500 {
					t.Errorf("%d writes of others were answered in 5 minutes", served)
				}
			})
		})
	}
}

// A program writes a node in the background, again and again, and the servers hang up on each of these writes.
func TestHangUpAtRepeatedBackgroundWriteLeavesTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newOrderFixture(t, retry.Forever(5*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		must(t, f.client.EnsurePath(ctx, "/bad"))
		f.server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Path: "/bad", Action: curatortest.CutBefore})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for f.client.SetData().InBackground(nil).ForPath(ctx, "/bad", nil) == nil && ctx.Err() == nil {
				<-time.After(10 * time.Second)
			}
		}()
		<-time.After(time.Second)
		failed, served := 0, 0
		for ; ctx.Err() == nil; <-time.After(time.Second) {
			one, done := context.WithTimeout(ctx, time.Minute)
			if _, err := f.client.SetData().ForPath(one, "/node", nil); err != nil {
				failed++
			} else {
				served++
			}
			done()
		}
		<-ended
		if failed > 3 {
			t.Errorf("%d of %d writes of others have no answer after a minute", failed, failed+served)
		}
	})
}
