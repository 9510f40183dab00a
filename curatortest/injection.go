package curatortest

import (
	"context"
	"errors"
	"slices"
	"sync"
)

var errRemoved = errors.New("curatortest: injection was removed before its first hit")

// Injection is a [Rule] that was added. All methods are safe for concurrent use.
type Injection struct {
	faults *Faults
	rule   Rule
	glob   glob
	err    error
	added  string // file and line of Add

	first    chan struct{} // closed at the first hit
	released chan struct{}
	removed  chan struct{}

	mu    sync.Mutex
	found uint64 // number of matches
	seen  int    // matches that Chance lets count
	taken int    // of those, the matches that Action is for; each becomes a hit unless its connection ends before
	hits  int
	met   bool // it was removed after a match and before its hit
}

// Add adds a rule for the frames that come from now on. When several rules match a frame, all of them act, in the order
// in which they were added, until one ends the connection. An invalid rule matches nothing, and Err returns its error.
//
// Close of the server, cluster or proxy returns an error for each invalid rule, and one that wraps [ErrNeverHit] for
// each rule that has not acted, removed or not, unless it has MayMiss. A rule has acted if it is removed between a
// match and its action. So a test fails if its fault did not happen.
func (f *Faults) Add(r Rule) *Injection {
	r.Ops = slices.Clone(r.Ops)
	in := &Injection{
		faults:   f,
		rule:     r,
		err:      r.Validate(),
		added:    callerOf(),
		first:    make(chan struct{}),
		released: make(chan struct{}),
		removed:  make(chan struct{}),
	}
	if in.err == nil {
		in.glob, in.err = compileGlob(r.Path)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		in.shut(in.removed)
		return in
	}
	f.unproven = append(f.unproven, in)
	if in.err != nil {
		return in
	}
	f.setInjections(append(f.injections(), in))
	return in
}

// Err returns the error of an invalid rule, or nil.
func (in *Injection) Err() error { return in.err }

// Remove ends the rule: it matches nothing more, held and delayed frames continue, and replies that it waits for pass.
// A second Remove does nothing.
func (in *Injection) Remove() {
	in.mu.Lock()
	in.met = in.taken > 0
	in.mu.Unlock()
	in.remove()
}

func (in *Injection) remove() {
	in.faults.mu.Lock()
	list := in.faults.injections()
	if i := slices.Index(list, in); i >= 0 {
		in.faults.setInjections(slices.Delete(list, i, i+1))
		in.faults.forgetProven()
	}
	in.faults.mu.Unlock()
	in.shut(in.removed)
	in.shut(in.released)
}

// Release lets frames pass that HoldRequest or HoldReply holds. Later matches are hits, but are not held. Call Wait
// first to be sure that a frame is held. A second Release does nothing.
func (in *Injection) Release() { in.shut(in.released) }

// Hits returns the number of actions: connections that were cut, and requests, replies and events that were held,
// delayed, dropped, refused or duplicated.
func (in *Injection) Hits() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.hits
}

// Wait returns nil after the first hit: the connection is cut, the request is held, or the server has sent the reply
// that the rule is about. It returns an error when ctx ends, if the rule is invalid, and if Remove or the end of the
// [Proxy] comes before the first hit.
func (in *Injection) Wait(ctx context.Context) error {
	if in.err != nil {
		return in.err
	}
	select {
	case <-in.first:
		return nil
	case <-in.removed:
	case <-ctx.Done():
	}
	select {
	case <-in.first:
		return nil
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errRemoved
}

// take reports whether the rule acts on the frame, and counts it.
func (in *Injection) take(m *message) bool {
	if !in.rule.wants(in.glob, m) {
		return false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.found++
	if !in.rule.counts(in.found) {
		return false
	}
	in.seen++
	if in.seen <= in.rule.Skip || in.rule.Count > 0 && in.taken >= in.rule.Count {
		return false
	}
	in.taken++
	return true
}

func (in *Injection) hit() {
	in.count()
	in.announce()
}

// count counts a hit. A cut is counted before it happens, so that a test that sees its effect finds it counted.
func (in *Injection) count() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.hits++
}

// announce ends [Injection.Wait].
func (in *Injection) announce() { in.shut(in.first) }

func (in *Injection) over() bool {
	select {
	case <-in.removed:
		return true
	default:
		return false
	}
}

// shut closes one of the injection's channels once.
func (in *Injection) shut(c chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// injections returns a copy of the rules at work.
func (f *Faults) injections() []*Injection { return slices.Clone(*f.active.Load()) }

func (f *Faults) setInjections(list []*Injection) { f.active.Store(&list) }

// match returns the rules that act on the frame.
func (f *Faults) match(m *message) []*Injection {
	var acts []*Injection
	for _, in := range *f.active.Load() {
		if in.take(m) {
			acts = append(acts, in)
		}
	}
	return acts
}
