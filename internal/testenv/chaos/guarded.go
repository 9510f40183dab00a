package chaos

import "sync"

// Guarded is a counter that a lock guards. It refuses tokens lower than the highest one so far, so it need not trust
// the lock.
type Guarded struct {
	mu                       sync.Mutex
	newest                   int64
	value, accepted, refused int
}

// Read returns the value, unless it has seen a higher token. From now on it refuses lower ones.
func (g *Guarded) Read(token int64) (value int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < g.newest {
		g.refused++
		return 0, false
	}
	g.newest = token
	return g.value, true
}

// Write sets the value, unless it has seen a higher token.
func (g *Guarded) Write(token int64, value int) (ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < g.newest {
		g.refused++
		return false
	}
	g.newest = token
	g.value = value
	g.accepted++
	return true
}

// Counts returns the value, the number of accepted writes, and the number of refused reads and writes. The first two
// are equal if every writer added one to the value that it had read, and no other write came in between.
func (g *Guarded) Counts() (value, accepted, refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value, g.accepted, g.refused
}
