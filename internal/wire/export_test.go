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

// Unsent returns how many bytes the current connection has encoded and not written.
func (c *Conn) Unsent() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		n = len(c.link.out)
	}
	return n
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
