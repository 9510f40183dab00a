package conformance_test

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

var statStories = []story{
	{name: "a node has the time of its creation and of its last change", play: times},
	{name: "the nodes of a multi have one time", play: timesOfMulti},
}

func times(t stage) {
	c := connect(t, t.addr, sessionTimeout)
	before := time.Now().UnixMilli()
	made := c.create(t, "/times", persistent)
	if made.Ctime < before || made.Ctime > time.Now().UnixMilli() || made.Mtime != made.Ctime {
		t.Errorf("created after %d with ctime %d and mtime %d", before, made.Ctime, made.Mtime)
	}
	stat := func() zk.Stat {
		t.Helper()
		return c.must(t, jute.Request{Op: jute.OpExists, Path: "/times"}).Stat
	}
	nextMilli(made.Mtime)
	c.create(t, "/times/a", persistent)
	c.delete(t, "/times/a")
	c.must(t, jute.Request{Op: jute.OpSetACL, Path: "/times", Version: -1})
	if s := stat(); s.Mtime != made.Mtime || s.Ctime != made.Ctime {
		t.Errorf("children and ACL took the times from %d and %d to %d and %d", made.Ctime, made.Mtime, s.Ctime, s.Mtime)
	}
	before = time.Now().UnixMilli()
	set := c.must(t, jute.Request{Op: jute.OpSetData, Path: "/times", Version: -1}).Stat
	if s := stat(); s != set || s.Ctime != made.Ctime || s.Mtime < before || s.Mtime > time.Now().UnixMilli() {
		t.Errorf("changed after %d: %+v, then %+v", before, set, s)
	}
}

func timesOfMulti(t stage) {
	c := connect(t, t.addr, sessionTimeout)
	acl := zk.WorldACL(zk.PermAll)
	results := c.must(t, jute.Request{Op: jute.OpMulti, Ops: []jute.Request{
		{Op: jute.OpCreateTTL, Path: "/multi-a", ACL: acl, Flags: withTTL, TTL: hour},
		{Op: jute.OpCreateTTL, Path: "/multi-b", ACL: acl, Flags: withTTL, TTL: hour},
		{Op: jute.OpSetData, Path: "/multi-a", Version: -1},
	}}).Results
	first := results[0].Stat
	for _, r := range results {
		if r.Stat.Ctime != first.Ctime || r.Stat.Mtime != first.Ctime || r.Stat.Mzxid != first.Czxid {
			t.Errorf("times in one multi: %+v and %+v", first, r.Stat)
		}
	}
}

// nextMilli returns when the clock shows another millisecond.
func nextMilli(last int64) {
	for time.Now().UnixMilli() <= last {
		<-time.After(time.Millisecond)
	}
}
