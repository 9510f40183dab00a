package fetch

// mode says how a fetcher learns of the items of its queue.
//
//	unknown   → relisting  a list is requested
//	listed    → relisting  the items of a list are used up
//	relisting → listed     the list has items to claim
//	relisting → empty      the list has none
//	any       → watched    all is watched; the list of the items follows
//	watched   → unknown    the watches end
//	watched   → outdated   an event was missed, or a request failed
//	any other → unknown    an event was missed, or a request failed
type mode int

const (
	unknown   mode = iota // a list is needed
	listed                // the items are those of a list
	relisting             // the next list is on its way
	empty                 // the last list had nothing to claim
	watched               // events report each change of items and locks
	outdated              // all is watched, but an event was missed: a list is needed
)

// isKnown reports whether the items are known as well as the mode allows.
func (m mode) isKnown() bool { return m != unknown && m != outdated }

// isWatching reports whether items and locks are watched, even if an event was missed.
func (m mode) isWatching() bool { return m == watched || m == outdated }

// doubt ends the reliance on what is known: an event was missed, or a request failed.
func (m *mode) doubt() {
	if m.isWatching() {
		*m = outdated
		return
	}
	*m = unknown
}

// relist notes the request for a list. Where all is watched, events that follow keep the list.
func (m *mode) relist() {
	if *m != watched {
		*m = relisting
	}
}

// found notes a list with so many items to claim.
func (m *mode) found(free int) {
	switch {
	case *m == watched:
	case free == 0:
		*m = empty
	default:
		*m = listed
	}
}

// watch notes that items and locks are watched.
func (m *mode) watch() { *m = watched }

// unwatch notes that items and locks are not watched any more.
func (m *mode) unwatch() { *m = unknown }
