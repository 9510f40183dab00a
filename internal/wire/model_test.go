package wire

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// The counts of traffic and of watcherSet.leaving say what looking at all requests under way would: a model that looks
// at them, as the code did before there were counts, agrees at each step.

type modelWatcher int

func (modelWatcher) Notify(zk.Event) {}

type model struct{ l *link }

func (m model) flight() (all []*Request) {
	q := &m.l.flight
	for i := range q.len() {
		all = append(all, q.slots[(q.head+uint(i))&uint(len(q.slots)-1)])
	}
	return all
}

func (m model) waiting() (all []*Request) {
	for r := m.l.waiting.first; r != nil; r = r.next {
		all = append(all, r)
	}
	return all
}

func (m model) at(r *Request) string { return r.serverPath(m.l.c) }

func (m model) leaving(path string, w Watcher) bool {
	return slices.ContainsFunc(m.flight(), func(o *Request) bool {
		return o.Op == jute.OpRemoveWatches && o.Flags == WatchAny && o.Watcher == w && m.at(o) == path
	})
}

func (m model) setting(path string, w Watcher) bool {
	return slices.ContainsFunc(append(m.flight(), m.waiting()...), func(o *Request) bool {
		return o.Watcher == w && m.at(o) == path && o.Op != jute.OpRemoveWatches
	})
}

func (m model) isCovered(path string) bool {
	all := append(slices.Collect(m.l.c.watches.sets[kindPersistent][path].all()),
		slices.Collect(m.l.c.watches.sets[kindRecursive][path].all())...)
	return !m.leaving(path, nil) && slices.ContainsFunc(all, func(o Watcher) bool { return !m.leaving(path, o) })
}

func (m model) registering(r *Request) bool {
	all := m.flight()
	for i, o := range all {
		if o.Watcher == nil || o.Op == jute.OpRemoveWatches || m.at(o) != m.at(r) {
			continue
		}
		stays := !slices.ContainsFunc(all[i+1:], func(b *Request) bool {
			return b.Op == jute.OpRemoveWatches && b.Flags == WatchAny && b.Watcher == o.Watcher && m.at(b) == m.at(o)
		})
		if o.Watcher == r.Watcher {
			stays = o.Op == jute.OpAddWatch && r.Flags != WatchAny
		}
		if stays {
			return true
		}
	}
	return false
}

func (m model) removal(t WatcherType, path string, w Watcher) (jute.Op, WatcherType) {
	ws := &m.l.c.watches
	needed := func(table WatcherType) bool {
		for k := range kinds {
			if table == WatchData && k == kindChild || table == WatchChildren && (k == kindData || k == kindExist) {
				continue
			}
			for o := range ws.sets[k][path].all() {
				if goes := (w == nil || o == w) && slices.Contains(selected(t), k); !goes && !m.leaving(path, o) {
					return true
				}
			}
		}
		return false
	}
	switch {
	case !needed(t):
		return jute.OpRemoveWatches, t
	case t == WatchAny && ws.has(WatchData, path, w) && !needed(WatchData):
		return jute.OpRemoveWatches, WatchData
	case t == WatchAny && ws.has(WatchChildren, path, w) && !needed(WatchChildren):
		return jute.OpRemoveWatches, WatchChildren
	}
	return jute.OpCheckWatches, t
}

// uncoverable returns a one-shot watch on the wire behind an addWatch that covers it.
func (m model) uncoverable() *Request {
	all := m.flight()
	for i, r := range all {
		children := r.Op == jute.OpGetChildren2
		if r.Op != jute.OpExists && r.Op != jute.OpGetData && !children {
			continue
		}
		if slices.ContainsFunc(all[:i], func(o *Request) bool {
			return o.Op == jute.OpAddWatch && o.Watcher != nil && m.at(o) == m.at(r) && (o.Flags == Persistent || !children)
		}) {
			return r
		}
	}
	return nil
}

// check compares the counts with the model.
func (m model) check(paths []string, watchers []Watcher) error {
	ws := &m.l.c.watches
	if r := m.uncoverable(); r != nil {
		return fmt.Errorf("%s %s is sent behind an addWatch", r.Op, m.at(r))
	}
	for _, path := range paths {
		exists := &Request{Request: jute.Request{Op: jute.OpExists, Path: path}, Absolute: true, Watcher: modelWatcher(0)}
		if got, want := ws.isCovered(exists, path), m.isCovered(path); got != want {
			return fmt.Errorf("covered %s: %v, want %v", path, got, want)
		}
		for _, w := range append(watchers, nil) {
			if got, want := ws.traffic.isLeaving(path, w), m.leaving(path, w); got != want {
				return fmt.Errorf("leaving %s %v: %v, want %v", path, w, got, want)
			}
			if w != nil {
				if got, want := ws.traffic.isSetting(path, w), m.setting(path, w); got != want {
					return fmt.Errorf("setting %s %v: %v, want %v", path, w, got, want)
				}
			}
			for t := WatchChildren; t <= WatchAny; t++ {
				r := &Request{Request: jute.Request{Op: jute.OpRemoveWatches, Path: path, Flags: t}, Absolute: true, Watcher: w}
				if got, want := ws.traffic.staysFor(r, path), m.registering(r); got != want {
					return fmt.Errorf("stays for removal %d of %v at %s: %v, want %v", t, w, path, got, want)
				}
				op, flags := ws.removal(t, path, w)
				if wantOp, want := m.removal(t, path, w); op != wantOp || flags != want {
					return fmt.Errorf("removal %d of %v at %s: %v %d, want %v %d", t, w, path, op, flags, wantOp, want)
				}
			}
		}
		for k := range kinds {
			set := ws.sets[k][path]
			if set == nil {
				continue
			}
			n, leaving := 0, 0
			for w := range set.all() {
				n++
				if m.leaving(path, w) {
					leaving++
				}
			}
			if n == 0 || set.n != n || set.leaving != leaving {
				return fmt.Errorf("set %d of %s: n %d leaving %d, want %d %d", k, path, set.n, set.leaving, n, leaving)
			}
		}
	}
	return nil
}

type nobody struct{}

func (nobody) Answered(*Request) {}

func TestTrafficAgreesWithAModel(t *testing.T) {
	for seed := range uint64(12) {
		if err := runModel(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func runModel(seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := &Conn{
		cfg:   Config{Chroot: []string{"", "/app"}[seed%2], OnUnsent: func([]*Request) {}, SessionTimeout: time.Minute},
		clock: clock{epoch: time.Now()}, flush: make(chan struct{}, 1), hosts: new(Hosts),
	}
	connect := func() *link {
		l := &link{c: c, windows: newWindows(time.Minute)}
		if seed%3 == 0 { // few are in flight, so that others wait
			for i := range l.windows.byKind {
				l.windows.byKind[i] = window{limit: 2, last: c.now()}
			}
		}
		c.link = l
		return l
	}
	m := model{connect()}
	paths := []string{"/", "/a", "/app", "/app/a", "/app/app/a"}
	var watchers []Watcher
	for i := range 3 + int(seed%12) {
		watchers = append(watchers, modelWatcher(i))
	}
	newRequest := func() *Request {
		r := &Request{Handler: nobody{}, Absolute: rnd.IntN(3) == 0, Watcher: watchers[rnd.IntN(len(watchers))]}
		r.Path = []string{"/a", "/app/a", "/"}[rnd.IntN(3)]
		if r.Absolute && r.Path == "/" {
			r.Path = "/app"
		}
		switch rnd.IntN(8) {
		case 0:
			r.Op = jute.OpGetData
		case 1:
			r.Op = jute.OpExists
		case 2:
			r.Op = jute.OpGetChildren2
		case 3:
			r.Op, r.Flags = jute.OpAddWatch, int32(rnd.IntN(2))
		default:
			r.Op, r.Flags = jute.OpRemoveWatches,
				[]WatcherType{WatchChildren, WatchData, WatchAny, WatchAny, WatchAny}[rnd.IntN(5)]
			if rnd.IntN(6) == 0 {
				r.Watcher = nil
			}
		}
		return r
	}
	for step := range 400 {
		what := rnd.IntN(20)
		switch {
		case what < 9:
			c.mu.Lock()
			m.l.submit(newRequest())
			c.mu.Unlock()
		case what < 16:
			if r := m.l.flight.peek(); r != nil {
				code := jute.CodeOK
				if rnd.IntN(3) == 0 {
					code = []jute.Code{jute.CodeNoNode, jute.CodeNoWatcher, jute.CodeUnimplemented}[rnd.IntN(3)]
				}
				var body []byte
				if code == jute.CodeOK {
					body = jute.AppendReply(nil, r.Op, &jute.Reply{})
				}
				if err := m.l.answered(jute.ReplyHeader{Xid: r.xid, Code: code}, body); err != nil {
					return err
				}
			}
		case what == 16:
			c.fire(jute.WatcherEvent{
				Type: []zk.EventType{zk.EventNodeDataChanged, zk.EventNodeDeleted, zk.EventNodeChildrenChanged}[rnd.IntN(3)],
				Path: paths[rnd.IntN(len(paths))],
			})
		case what == 17:
			r := newRequest()
			c.Forget(&Request{
				Request:  jute.Request{Path: r.Path, Flags: []WatcherType{WatchChildren, WatchData, WatchAny}[rnd.IntN(3)]},
				Absolute: r.Absolute, Watcher: r.Watcher,
			})
		case what == 18:
			if all := m.waiting(); len(all) > 0 {
				c.Withdraw(all[rnd.IntN(len(all))])
			}
		case rnd.IntN(10) == 0: // the connection is lost, and there is another
			m.l.drain()
			if len(c.watches.traffic.paths)+len(c.watches.traffic.watchers) > 0 {
				return fmt.Errorf("step %d: traffic of no connection: %+v", step, c.watches.traffic)
			}
			m = model{connect()}
		case rnd.IntN(20) == 0:
			c.broadcast(zk.Event{Type: zk.EventSession, State: zk.StateExpired})
		}
		m.l.out = m.l.out[:0] // written
		if err := m.check(paths, watchers); err != nil {
			return fmt.Errorf("step %d (%d): %w", step, what, err)
		}
	}
	for r := m.l.flight.peek(); r != nil; r = m.l.flight.peek() {
		if err := m.l.answered(jute.ReplyHeader{Xid: r.xid, Code: jute.CodeNoNode}, nil); err != nil {
			return err
		}
	}
	for at, p := range c.watches.traffic.paths {
		if p != (pathTraffic{orphaned: true}) {
			return fmt.Errorf("nothing is under way, and %s has %+v", at, p)
		}
	}
	if len(c.watches.traffic.watchers) > 0 {
		return fmt.Errorf("nothing is under way, and there is %+v", c.watches.traffic.watchers)
	}
	return nil
}
