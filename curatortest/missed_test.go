package curatortest_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// faultyThing is whatever has faults and an end.
type faultyThing struct {
	faults *curatortest.Faults
	close  func() error
}

// faultyThings are what a test can make that has faults.
func faultyThings(t *testing.T) map[string]faultyThing {
	t.Helper()
	server, err := curatortest.NewServer(curatortest.WithoutPort())
	must(t, err)
	cluster, err := curatortest.NewCluster(3, curatortest.WithoutPort())
	must(t, err)
	proxy, err := curatortest.NewProxy("127.0.0.1:1")
	must(t, err)
	return map[string]faultyThing{
		"server":  {server.Faults(), server.Close},
		"cluster": {cluster.Servers()[2].Faults(), cluster.Close},
		"proxy":   {proxy.Faults(), proxy.Close},
	}
}

func TestCloseNamesRulesWithoutAHit(t *testing.T) {
	for name, thing := range faultyThings(t) {
		t.Run(name, func(t *testing.T) {
			thing.faults.Add(curatortest.Rule{Ops: []string{"delete"}, Path: "/**/lock-", Action: curatortest.CutBefore})
			thing.faults.Add(curatortest.Rule{Path: "/b", Skip: 2, Action: curatortest.DropReply}).Remove()
			thing.faults.Add(curatortest.Rule{Path: "/lenient", MayMiss: true, Action: curatortest.DropReply})
			for range 2 { // an error that was not read is kept
				err := thing.close()
				if !errors.Is(err, curatortest.ErrNeverHit) {
					t.Fatalf("got %v", err)
				}
				for _, want := range []string{"CutBefore", "delete", "/**/lock-", "DropReply", "/b", "missed_test.go:"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not name %s", err, want)
					}
				}
				if strings.Contains(err.Error(), "/lenient") {
					t.Errorf("%q names a rule that may miss", err)
				}
			}
		})
	}
}

func TestCloseNamesInvalidRules(t *testing.T) {
	for name, thing := range faultyThings(t) {
		t.Run(name, func(t *testing.T) {
			misspelled := curatortest.Rule{Ops: []string{"getchildren"}, MayMiss: true, Action: curatortest.CutBefore}
			malformed := curatortest.Rule{Path: "/a/[", Action: curatortest.CutBefore}
			if thing.faults.Add(misspelled).Err() == nil || thing.faults.Add(malformed).Err() == nil {
				t.Error("an invalid rule has no error")
			}
			err := thing.close()
			if err == nil || !strings.Contains(err.Error(), `"getchildren"`) || !strings.Contains(err.Error(), `"/a/["`) {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, curatortest.ErrNeverHit) {
				t.Errorf("got %v: an invalid rule cannot hit", err)
			}
		})
	}
}

func TestCloseReturnsNilWhenAllRulesHit(t *testing.T) {
	for kind, set := range ways {
		t.Run(kind, func(t *testing.T) {
			_, p := set(t)
			c := connectRaw(t, p)
			p.Add(curatortest.Rule{Path: "/a", Action: curatortest.DropReply}) // at work to the end
			removed := p.Add(curatortest.Rule{Path: "/b", Action: curatortest.DropReply})
			last := p.Add(curatortest.Rule{Path: "/c", Action: curatortest.CutAfter})
			c.send("/a", "/b")
			wait(t, removed)
			removed.Remove()
			c.send("/c")
			wait(t, last)
			must(t, p.close())
		})
	}
}

// A reply that a rule waits for and that never comes is no hit.
func TestCloseNamesRuleWhoseReplyNeverCame(t *testing.T) {
	f := curatortest.NewFaults(newScriptedInMemory(t).dial)
	p := &faulty{Faults: f, dial: func() (net.Conn, error) { return f.Connect(t.Context()) }, close: f.Close}
	c := connectRaw(t, p)
	p.Add(curatortest.Rule{Path: "/a", Action: curatortest.HoldReply})
	before := p.Add(curatortest.Rule{Path: "/a", Action: curatortest.CutBefore})
	c.send("/a")
	wait(t, before)
	err := p.close()
	if !errors.Is(err, curatortest.ErrNeverHit) || !strings.Contains(err.Error(), "HoldReply") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "CutBefore") {
		t.Errorf("%q names a rule that has hit", err)
	}
}

// failures is a test that only records what is wrong with it.
type failures struct {
	testing.TB
	cleanups []func()
	errs     []string
}

func (f *failures) Helper() {}

func (f *failures) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }

func (f *failures) Error(args ...any) {
	for _, arg := range args {
		f.errs = append(f.errs, arg.(error).Error())
	}
}

func (f *failures) end() []string {
	for _, fn := range f.cleanups {
		fn()
	}
	return f.errs
}

func TestRuleWithoutAHitFailsItsTest(t *testing.T) {
	type made = func(tb testing.TB) (*curatortest.Faults, interface{ Close() error })
	for name, make := range map[string]made{
		"server": func(tb testing.TB) (*curatortest.Faults, interface{ Close() error }) {
			tb.Helper()
			s := curatortest.NewServerT(tb, curatortest.WithoutPort())
			return s.Faults(), s
		},
		"cluster": func(tb testing.TB) (*curatortest.Faults, interface{ Close() error }) {
			tb.Helper()
			c := curatortest.NewClusterT(tb, 3, curatortest.WithoutPort())
			return c.Servers()[1].Faults(), c
		},
		"proxy": func(tb testing.TB) (*curatortest.Faults, interface{ Close() error }) {
			tb.Helper()
			p := curatortest.NewProxyT(tb, "127.0.0.1:1")
			return p.Faults(), p
		},
	} {
		rule := curatortest.Rule{Path: "/never", Action: curatortest.CutBefore}
		t.Run(name, func(t *testing.T) {
			tb := &failures{TB: t}
			faults, _ := make(tb)
			var wg sync.WaitGroup
			wg.Go(func() { faults.Add(rule) })
			wg.Wait()
			if errs := tb.end(); len(errs) != 1 || !strings.Contains(errs[0], "/never") {
				t.Errorf("got %q", errs)
			}
		})
		t.Run(name+" closed before", func(t *testing.T) {
			tb := &failures{TB: t}
			faults, thing := make(tb)
			faults.Add(rule)
			thing.Close() //nolint:errcheck // what is to be found at the end
			if errs := tb.end(); len(errs) != 1 {
				t.Errorf("got %q", errs)
			}
		})
		t.Run(name+" without rules", func(t *testing.T) {
			tb := &failures{TB: t}
			make(tb)
			if errs := tb.end(); len(errs) != 0 {
				t.Errorf("got %q", errs)
			}
		})
	}
}

func TestRuleAddedAfterCloseIsNoMiss(t *testing.T) {
	_, p := scriptedInMemory(t)
	must(t, p.close())
	in := p.Add(curatortest.Rule{Action: curatortest.CutBefore})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := in.Wait(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	must(t, p.close())
}

func TestRuleString(t *testing.T) {
	for _, tt := range []struct {
		rule curatortest.Rule
		want string
	}{
		{curatortest.Rule{Action: curatortest.CutAfter}, "CutAfter"},
		{
			curatortest.Rule{
				Ops: []string{"create2", "multi"}, Path: "/a/**", SessionID: 0x10, Connection: 3, Chance: 0.5, Seed: 7, Skip: 1,
				Count: 2, Action: curatortest.DelayReply, Delay: time.Second, MayMiss: true,
			},
			`DelayReply create2 multi at "/a/**", session 0x10, connection 3, chance 0.5, seed 7, ` +
				`skip 1, count 2, delay 1s, may miss`,
		},
		{
			curatortest.Rule{Action: curatortest.ReplyError, Err: errors.New("no auth")},
			`ReplyError, error "no auth"`,
		},
	} {
		if got := tt.rule.String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// A test may end a fault when the request is seen and the answer is still on its way.
func TestCloseAcceptsRuleThatIsRemovedBeforeTheReplyComes(t *testing.T) {
	f := curatortest.NewFaults(newScriptedInMemory(t).dial)
	p := &faulty{Faults: f, dial: func() (net.Conn, error) { return f.Connect(t.Context()) }, close: f.Close}
	c := connectRaw(t, p)
	reply := p.Add(curatortest.Rule{Path: "/a", Action: curatortest.HoldReply})
	cut := p.Add(curatortest.Rule{Path: "/a", Action: curatortest.CutBefore})
	c.send("/a")
	wait(t, cut)
	reply.Remove()
	must(t, p.close())
}
