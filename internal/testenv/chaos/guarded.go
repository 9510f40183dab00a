package chaos

import "sync"

// Guarded is a counter that refuses who has not the highest token it has seen: what a lock guards, and what can do
// without trusting it.
type Guarded struct {
	mu                       sync.Mutex
	newest                   int64
	value, accepted, refused int
}

// Read returns the value, unless somebody with a higher token was here. From now on lower ones are refused.
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

// Write sets the value, unless somebody with a higher token was here.
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

// Counts returns the value, how many writes were accepted, and how many reads and writes were refused. If every writer
// added one to what it had read, and none came between, the first two are the same.
func (g *Guarded) Counts() (value, accepted, refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value, g.accepted, g.refused
}
