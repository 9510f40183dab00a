package curatortest

import (
	"context"
	"fmt"
	"testing"
	"time"
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
	p, err := NewProxy("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	in := p.Add(Rule{Action: CutBefore, Path: "/["})
	if in.Err() == nil || in.Wait(context.Background()) == nil {
		t.Error("an invalid rule has no error")
	}
	if n := len(p.injections()); n != 0 {
		t.Errorf("%d rules at work", n)
	}
	in.Release()
	in.Remove()
}

func TestNames(t *testing.T) {
	for a := CutBefore; a <= DropReply; a++ {
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
		{Action(9), "Action(9)"},
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

func TestTraceIsBounded(t *testing.T) {
	var p Proxy
	for i := range traceSize + 5 {
		p.trace.add(TraceEntry{Xid: int32(i)})
	}
	got := p.Trace()
	if len(got) != traceSize || got[0].Xid != 5 || got[traceSize-1].Xid != traceSize+4 {
		t.Errorf("%d entries, %d to %d", len(got), got[0].Xid, got[len(got)-1].Xid)
	}
	p.ResetTrace()
	p.trace.add(TraceEntry{Xid: 7})
	if got := p.Trace(); len(got) != 1 || got[0].Xid != 7 {
		t.Errorf("after reset: %v", got)
	}
}
