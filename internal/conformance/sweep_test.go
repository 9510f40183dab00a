package conformance_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

const (
	persistent = 0
	container  = 4
	withTTL    = 5
)

var sweepStories = []story{
	{name: "a container goes when it is empty again", play: containerGoes},
	{name: "a container that was never used stays", play: containerStays},
	{name: "a container that is empty again for its container goes before it", play: containersGo},
	{name: "a node goes when its time to live is over", play: nodeGoes},
	{name: "a node that is written to lives on", play: nodeIsWritten},
	{name: "a node lives as long as its children", play: nodeHasChildren},
}

func (c *conn) createContainer(tb testing.TB, path string) {
	tb.Helper()
	c.must(tb, jute.Request{Op: jute.OpCreateContainer, Path: path, Flags: container})
}

func (c *conn) createTTL(tb testing.TB, path string, ttl time.Duration) zk.Stat {
	tb.Helper()
	r := c.must(tb, jute.Request{Op: jute.OpCreateTTL, Path: path, Flags: withTTL, TTL: ttl.Milliseconds()})
	return r.Stat
}

func containerGoes(t stage) {
	c, witness := connect(t, t.addr, sessionTimeout), connect(t, t.addr, sessionTimeout)
	c.createContainer(t, "/container")
	c.create(t, "/container/a", persistent)
	witness.watch(t, "/container")
	c.delete(t, "/container/a")
	witness.awaitDeleted(t, "/container")
}

// containerStays: the sweep that another container goes with has looked at these too.
func containerStays(t stage) {
	c := connect(t, t.addr, sessionTimeout)
	c.createContainer(t, "/never-used")
	c.createContainer(t, "/in-use")
	c.create(t, "/in-use/a", persistent)
	c.create(t, "/in-use/b", persistent)
	c.delete(t, "/in-use/a")
	containerRound(t, t.addr, "/round-1")
	containerRound(t, t.addr, "/round-2")
	c.must(t, jute.Request{Op: jute.OpExists, Path: "/never-used"})
	c.must(t, jute.Request{Op: jute.OpExists, Path: "/in-use"})
}

func containerRound(tb testing.TB, addr, path string) {
	tb.Helper()
	c := connect(tb, addr, sessionTimeout)
	c.createContainer(tb, path)
	c.create(tb, path+"/a", persistent)
	c.delete(tb, path+"/a")
	c.awaitGone(tb, path)
}

// awaitGone waits until a node is gone, which it may be already.
func (c *conn) awaitGone(tb testing.TB, path string) {
	tb.Helper()
	a, err := c.request(&jute.Request{Op: jute.OpExists, Path: path, Watch: true})
	if err != nil {
		tb.Fatal(err)
	}
	if a.Code == jute.CodeOK {
		c.awaitDeleted(tb, path)
	}
}

func containersGo(t stage) {
	c, witness := connect(t, t.addr, sessionTimeout), connect(t, t.addr, sessionTimeout)
	c.createContainer(t, "/outer")
	c.createContainer(t, "/outer/inner")
	c.create(t, "/outer/inner/a", persistent)
	witness.watch(t, "/outer")
	witness.watch(t, "/outer/inner")
	c.delete(t, "/outer/inner/a")
	witness.awaitDeleted(t, "/outer/inner")
	witness.awaitDeleted(t, "/outer")
}

// nodeGoes: on a busy machine the node may go before it is watched.
func nodeGoes(t stage) {
	c := connect(t, t.addr, sessionTimeout)
	const ttl = 500 * time.Millisecond
	made := c.createTTL(t, "/ttl", ttl)
	for !c.tryWatch(t, "/ttl") {
		lasted(t, time.UnixMilli(made.Mtime), ttl)
		made = c.createTTL(t, "/ttl", ttl)
	}
	checkAge(t, c.awaitDeleted(t, "/ttl"), made.Mtime, ttl)
}

// nodeIsWritten: on a busy machine the pause between two writes may be longer than the time to live.
func nodeIsWritten(t stage) {
	c := connect(t, t.addr, sessionTimeout)
	const ttl, pause = 900 * time.Millisecond, 150 * time.Millisecond
	write := func() (last zk.Stat, inTime bool) {
		last = c.createTTL(t, "/written", ttl)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for range (ttl + ttl/2) / pause {
			<-tick.C
			a, err := c.request(&jute.Request{Op: jute.OpSetData, Path: "/written", Version: -1})
			if err != nil {
				t.Fatal(err)
			}
			if a.Code == jute.CodeNoNode {
				lasted(t, time.UnixMilli(last.Mtime), ttl)
				return last, false
			}
			var r jute.Reply
			if err := errors.Join(a.Code.Err(), jute.DecodeReply(jute.OpSetData, a.body, &r)); err != nil {
				t.Fatal(err)
			}
			last = r.Stat
		}
		inTime = c.tryWatch(t, "/written")
		if !inTime {
			lasted(t, time.UnixMilli(last.Mtime), ttl)
		}
		return last, inTime
	}
	last, inTime := write()
	for !inTime {
		last, inTime = write()
	}
	checkAge(t, c.awaitDeleted(t, "/written"), last.Mtime, ttl)
}

// nodeHasChildren: when a younger node goes, the time of the older is over too. On a busy machine the older may go
// before it has a child.
func nodeHasChildren(t stage) {
	c := connect(t, t.addr, sessionTimeout)
	child := jute.Request{Op: jute.OpCreate2, Path: "/parent/a", ACL: zk.WorldACL(zk.PermAll)}
	for code := jute.CodeNoNode; code != jute.CodeOK; {
		c.createTTL(t, "/parent", 100*time.Millisecond)
		a, err := c.request(&child)
		if err != nil {
			t.Fatal(err)
		}
		code = a.Code
	}
	c.createTTL(t, "/younger", 500*time.Millisecond)
	c.awaitGone(t, "/younger")
	c.watch(t, "/parent")
	c.delete(t, "/parent/a")
	c.awaitDeleted(t, "/parent")
}

// checkAge checks that a node was not removed before its time; the server's clock is that of this machine.
func checkAge(tb testing.TB, gone time.Time, mtime int64, ttl time.Duration) {
	tb.Helper()
	age := gone.Sub(time.UnixMilli(mtime))
	if age < ttl || age > ttl+slack {
		tb.Errorf("the node was removed after %v, its time to live is %v", age, ttl)
	}
}
