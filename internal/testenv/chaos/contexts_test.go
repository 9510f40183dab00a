package chaos_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/testenv/chaos"
)

func TestContexts(t *testing.T) {
	alone := func(owner string) chaos.Grant { return chaos.Grant{Node: owner, Owner: owner, Alone: true} }
	shared := func(owner string) chaos.Grant { return chaos.Grant{Node: owner, Owner: owner} }
	for _, tt := range []struct {
		name          string
		most          int
		first, second chaos.Grant
		ends          time.Duration // after the first grant, the second being after a second; 0 is never
		expired       time.Duration // by force
		still         bool          // the process, after the first grant
		want          bool
	}{
		{name: "one after the other", first: alone("a"), second: alone("b"), ends: time.Second / 2, want: true},
		{name: "both alive", first: alone("a"), second: alone("b"), ends: 2 * time.Second},
		{name: "both alive for ever", first: alone("a"), second: alone("b")},
		{name: "of one owner", most: 9, first: alone("a"), second: chaos.Grant{Node: "c", Owner: "a"}, want: true},
		{name: "a reader with a writer", most: 9, first: alone("a"), second: shared("b")},
		{name: "a writer with a reader", most: 9, first: shared("a"), second: alone("b")},
		{name: "as many as may be", most: 2, first: shared("a"), second: shared("b"), want: true},
		{name: "one too many", most: 1, first: shared("a"), second: shared("b")},
		{name: "expired by force", first: alone("a"), second: alone("b"), expired: time.Second / 2, want: true},
		{name: "expired by force later", first: alone("a"), second: alone("b"), expired: 3 * time.Second / 2},
		{
			name: "the process stood still", first: alone("a"), second: alone("b"), ends: 2 * time.Second, still: true,
			want: true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &failing{TB: t}
				s, pulse := chaos.New(f), chaos.NewPulse()
				defer pulse.Stop()
				contexts := chaos.NewContexts(tt.most, 500*time.Millisecond, pulse)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				contexts.Granted(ctx, 1, tt.first)
				if tt.still {
					pulse.Stop()
				}
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, cancel)
				}
				if tt.expired > 0 {
					time.AfterFunc(tt.expired, func() { s.NoteExpiry(1) })
				}
				time.Sleep(time.Second)
				contexts.Granted(ctx, 2, tt.second)
				time.Sleep(2 * time.Second)
				contexts.Check(s, tt.name)
				if got := !f.Failed(); got != tt.want {
					t.Errorf("allowed: %t: %q", got, f.errors)
				}
			})
		})
	}
}
