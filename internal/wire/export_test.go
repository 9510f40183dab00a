package wire

// The limits, for tests that go beyond them.
const (
	FirstXid       = firstXid
	MaxInFlight    = maxInFlight
	SlowRequest    = slowRequest
	MaxUnsent      = maxUnsent
	MaxInlineWrite = maxInlineWrite
	MaxFrame       = maxFrame
	MaxSetWatches  = maxSetWatches
	LibraryBuffer  = libraryBuffer
)

// Load is what a connection has on its hands.
type Load struct{ Unsent, InFlight, Waiting int }

// Load returns what the current connection has on its hands.
func (c *Conn) Load() (l Load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		l = Load{Unsent: len(c.link.out), InFlight: c.link.flight.len(), Waiting: c.link.waiting.len()}
	}
	return l
}

// SetXids makes n the number of requests sent so far.
func (c *Conn) SetXids(n int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.xid = n
}

// CutForTest ends the current TCP connection.
func (c *Conn) CutForTest() { c.cutDialed() }

// Chroot returns the chroot.
func (c *Conn) Chroot() string { return c.cfg.Chroot }

// Traffic returns for how many paths and watchers requests are counted that set or remove watches.
func (c *Conn) Traffic() (paths, watchers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.watches.traffic.paths), len(c.watches.traffic.watchers)
}
