package curatortest

import (
	"context"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

func TestGlob(t *testing.T) {
	tests := []struct {
		pattern string
		path    string
		want    bool
	}{
		{"/a", "/a", true},
		{"/a", "/a/b", false},
		{"/a/*", "/a", false},
		{"/a/*", "/a/b", true},
		{"/a/*", "/a/b/c", false},
		{"/a/lock-*", "/a/lock-0000000001", true},
		{"/a/lock-*", "/a/lease-0000000001", false},
		{"/a/[xy]?", "/a/y1", true},
		{"/a/[xy]?", "/a/z1", false},
		{"/*/b", "/a/b", true},
		{"/a/**", "/a", false},
		{"/a/**", "/a/b", true},
		{"/a/**", "/a/b/c", true},
		{"/a/**", "/ab/c", false},
		{"/a/**/z", "/a/z", true},
		{"/a/**/z", "/a/b/c/z", true},
		{"/a/**/z", "/a/b/c/y", false},
		{"/**/leases/lease-*", "/app/sem/leases/lease-1", true},
		{"/**", "/", true},
		{"**", "/", true},
		{"**", "/a/b", true},
		{"/", "/", true},
		{"/", "/a", false},
		{"/a", "", false},
		{"**", "", false},
	}
	for _, tt := range tests {
		g, err := compileGlob(tt.pattern)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		if got := g.match(tt.path); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.path, got, tt.want)
		}
	}
}

func TestRuleValidate(t *testing.T) {
	tests := []struct {
		name string
		rule Rule
		ok   bool
	}{
		{"least", Rule{Action: CutAfter}, true},
		{"all", Rule{
			Ops: []string{"create2", "multi", "connect", "ping", "closeSession"}, Path: "/a/**",
			SessionID: 1, Skip: 1, Count: 1, Action: DelayReply, Delay: time.Second,
		}, true},
		{"more", Rule{
			Connection: 1, Chance: 1, Seed: 1, Action: ReplyError, Err: fmt.Errorf("wrapped: %w", zk.ErrNoAuth),
		}, true},
		{"code of this library", Rule{Action: ReplyError, Err: jute.ErrThrottledOp}, true},
		{"code behind which the connection ends", Rule{Action: ReplyErrorThenCut, Err: jute.ErrUnimplemented}, true},
		{"unknown code", Rule{Action: ReplyError, Err: jute.UnknownCode(-999)}, true},
		{"event twice", Rule{Ops: []string{"notification"}, Action: DuplicateReply}, true},
		{"event", Rule{Ops: []string{"notification"}, Action: DropReply}, true},
		{"no action", Rule{}, false},
		{"unknown action", Rule{Action: 99}, false},
		{"unknown operation", Rule{Action: CutAfter, Ops: []string{"Create"}}, false},
		{"the result of a failed operation", Rule{Action: CutAfter, Ops: []string{"error"}}, false},
		{"request of an event", Rule{Action: HoldRequest, Ops: []string{"notification"}}, false},
		{"glob", Rule{Action: CutAfter, Path: "/a/[x"}, false},
		{"relative", Rule{Action: CutAfter, Path: "a"}, false},
		{"skip", Rule{Action: CutAfter, Skip: -1}, false},
		{"count", Rule{Action: CutAfter, Count: -1}, false},
		{"no error", Rule{Action: ReplyError}, false},
		{"no error behind which it ends", Rule{Action: ReplyErrorThenCut}, false},
		{"an error no server knows", Rule{Action: ReplyError, Err: io.EOF}, false},
		{"an error that is none", Rule{Action: ReplyError, Err: jute.UnknownCode(0)}, false},
		{"error to a handshake", Rule{Ops: []string{"connect"}, Action: ReplyError, Err: zk.ErrNoAuth}, false},
		{"error to an event", Rule{Ops: []string{"notification"}, Action: ReplyError, Err: zk.ErrNoAuth}, false},
		{"reply twice", Rule{Ops: []string{"exists"}, Action: DuplicateReply}, false},
		{"event or reply twice", Rule{Ops: []string{"notification", "exists"}, Action: DuplicateReply}, false},
		{"anything twice", Rule{Action: DuplicateReply}, false},
		{"connection", Rule{Action: CutAfter, Connection: -1}, false},
		{"chance above 1", Rule{Action: CutAfter, Chance: 1.5}, false},
		{"chance below 0", Rule{Action: CutAfter, Chance: -0.5}, false},
		{"no chance at all", Rule{Action: CutAfter, Chance: math.NaN()}, false},
		{"delay", Rule{Action: DelayReply, Delay: -1}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.rule.Validate(); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestInvalidRuleMatchesNothing(t *testing.T) {
	f := newFaults(nil)
	defer f.close() //nolint:errcheck // there is nothing to close
	in := f.Add(Rule{Action: CutBefore, Path: "/["})
	if in.Err() == nil || in.Wait(context.Background()) == nil {
		t.Error("an invalid rule has no error")
	}
	if n := len(f.injections()); n != 0 {
		t.Errorf("%d rules at work", n)
	}
	in.Release()
	in.Remove()
}

func TestNames(t *testing.T) {
	for a := CutBefore; a <= DuplicateReply; a++ {
		if !a.valid() || a.String() == "" {
			t.Errorf("%d has no name", int(a))
		}
	}
	tests := []struct {
		value fmt.Stringer
		want  string
	}{
		{Action(0), "Action(0)"},
		{HoldReply, "HoldReply"},
		{Action(99), "Action(99)"},
		{ToServer, "ToServer"},
		{ToClient, "ToClient"},
		{Both, "Both"},
		{Direction(0), "Direction(0)"},
	}
	for _, tt := range tests {
		if got := tt.value.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
