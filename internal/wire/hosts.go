package wire

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits of the pauses between two passes over the servers, and of the first try's patience with one server. A
// server that is starting accepts connections and never answers those, so patience is short at first. It grows with
// each pass in which a server has used it up: refused connections, however many, do not count.
const (
	minPause    = 20 * time.Millisecond
	maxPause    = time.Second
	minPatience = time.Second
	maxDoubling = 16

	// A connection that has lasted so long shows that its server is well. So does an answer, at first: when many
	// connections in a row have had an answer and not lasted, there are pauses too.
	lasting   = time.Second
	flapPause = 10 * time.Millisecond
	manyFlaps = 64 // after which the pause is doubled
)

// target is a server of the connect string and one of its addresses.
type target struct {
	server  string // host:port as it was given
	address string // host:port to dial, "" as long as the name is not resolved
}

// name returns the target for logs and errors.
func (t target) name() string {
	if t.address == "" || t.address == t.server {
		return t.server
	}
	return t.server + " (" + t.address + ")"
}

// Hosts is the list of servers, and what was learnt by trying them. The sessions of a client share it: a server that
// ends every session at once is not met without a pause because the next session is another [Conn]. The zero value is
// ready.
type Hosts struct {
	// Jitter returns a random part of a pause; nil is one of any length. It is set before the first use.
	Jitter func(most time.Duration) time.Duration

	mu      sync.Mutex
	servers []string                 // shuffled
	version int                      // of servers
	isNew   bool                     // none of them was tried
	first   *target                  // to be tried before all others
	rest    []target                 // still to be tried in this pass
	last    target                   // tried last
	passes  int                      // begun since a connection has shown that its server is well
	tried   time.Time                // when the last try began
	given   time.Duration            // its patience
	mute    bool                     // a try of this pass has used up its patience
	mutes   int                      // passes before with such a try
	flaps   int                      // connections in a row that had an answer and did not last
	width   int                      // how many targets a pass has, as far as that is known
	proof   *proof                   // of the last connection
	failure error                    // of the last try; nil while a connection stands
	streak  bool                     // of failures, of which the first was reported
	calls   map[string]chan struct{} // of the program's functions that are under way
}

// proof is an established connection that may show that its server is well.
type proof struct {
	conn  *Conn
	since time.Time
	heard int64 // what was answered when it was established
}

// review takes from the last connection what it says of its server. mu is held.
func (h *Hosts) review() {
	p := h.proof
	if p == nil {
		return
	}
	h.proof = nil
	switch {
	case time.Since(p.since) >= lasting:
		h.flaps = 0
	case p.conn.lastAnswer.Load() > p.heard:
		h.flaps++
	default: // it failed, in a way
		return
	}
	h.passes, h.rest, h.streak = 0, nil, false
	h.mute, h.mutes = false, 0
}

// update replaces the list, unless the new one is empty or the same. The next server that is tried is of the new one.
func (h *Hosts) update(servers []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(servers) == 0 || slices.Equal(sorted(servers), sorted(h.servers)) {
		return
	}
	h.servers = slices.Clone(servers)
	rand.Shuffle(len(servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
	h.version++
	h.first, h.rest, h.isNew = nil, nil, true
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// list returns the servers and the version of the list.
func (h *Hosts) list() ([]string, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.servers), h.version
}

// isCurrent reports whether the list is still of this version.
func (h *Hosts) isCurrent(version int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version == version
}

// prefer makes t the next to be tried, without a pause.
func (h *Hosts) prefer(t target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first = &t
}

// begin begins a pass over the servers, in their order, behind the one that was tried last. mu is held.
func (h *Hosts) begin() {
	from := 1 + slices.Index(h.servers, h.last.server)
	h.rest = h.rest[:0]
	for i := range h.servers {
		h.rest = append(h.rest, target{server: h.servers[(from+i)%len(h.servers)]})
	}
	h.width = len(h.servers)
	h.passes++
	if h.mute {
		h.mute = false
		h.mutes++
	}
	h.isNew = false
}

// size returns how many targets a pass has.
func (h *Hosts) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.width, len(h.servers), 1)
}

// pause waits before the next try: not at all in the first pass over the servers, then before each pass, longer from
// one to the next. A connection that has shown that its server is well ends that.
func (h *Hosts) pause(ctx context.Context) error {
	h.mu.Lock()
	h.review()
	var pause time.Duration
	switch {
	case h.first != nil || h.isNew || len(h.rest) > 0:
	case h.passes > 0:
		pause = min(minPause<<min(h.passes-1, maxDoubling), maxPause)
		pause = pause/2 + h.jitter(pause/2)
	case h.flaps > 0:
		pause = min(flapPause<<min((h.flaps-1)/manyFlaps, maxDoubling), maxPause)
	}
	h.mu.Unlock()
	return sleep(ctx, pause)
}

func (h *Hosts) jitter(most time.Duration) time.Duration {
	if h.Jitter != nil {
		return h.Jitter(most)
	}
	return rand.N(most + 1)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// pick returns the next target, and how long it may take to accept and to answer the handshake: at most limit.
func (h *Hosts) pick(limit time.Duration) (target, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.rest) == 0 {
		h.begin()
	}
	var t target
	if h.first != nil {
		t, h.first = *h.first, nil
	} else {
		t, h.rest = h.rest[0], h.rest[1:]
	}
	h.tried, h.given = time.Now(), min(limit, minPatience<<min(h.mutes, maxDoubling))
	return t, h.given
}

// expand returns the first address of server to try; the others are next.
func (h *Hosts) expand(server string, addresses []string) target {
	h.mu.Lock()
	defer h.mu.Unlock()
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	if i := slices.Index(addresses, h.last.address); i >= 0 { // it has just failed
		addresses = append(slices.Delete(addresses, i, i+1), h.last.address)
	}
	all := make([]target, 0, len(addresses)+len(h.rest))
	for _, a := range addresses {
		all = append(all, target{server, a})
	}
	h.rest = append(all[1:len(addresses):len(addresses)], h.rest...)
	h.width += len(addresses) - 1
	return all[0]
}

// dialing notes that t is tried.
func (h *Hosts) dialing(t target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = t
}

// established notes that a connection of c stands.
func (h *Hosts) established(c *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proof = &proof{c, time.Now(), c.lastAnswer.Load()}
	h.failure = nil
}

// failed notes why there is no connection. It reports whether that is the first failure since a connection has shown
// that its server is well.
func (h *Hosts) failed(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = err
	h.mute = h.mute || time.Since(h.tried) >= h.given
	first := !h.streak
	h.streak = true
	return first
}

// lastError returns why there is no connection, nil if there is one or nothing is known.
func (h *Hosts) lastError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failure
}

// exhausted reports whether every server was tried.
func (h *Hosts) exhausted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.passes > 1 || len(h.rest) == 0
}

// isAddress reports whether the host of a server needs no lookup.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// resolve returns the addresses of a server, which is one itself if there is nothing to look up.
func (c *Conn) resolve(ctx context.Context, server string) ([]string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil || c.cfg.Resolve == nil || isAddress(host) {
		return []string{server}, nil
	}
	ips, err := call(ctx, c.hosts, "resolve "+host, func() ([]string, error) { return c.cfg.Resolve(ctx, host) }, nil)
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	addresses := make([]string, len(ips))
	for i, ip := range ips {
		addresses[i] = net.JoinHostPort(ip, port)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), nil
}

// hostProvider gives the library placeholders of servers: the dialer decides on servers and pauses.
type hostProvider struct{}

// Init is called by the library with the list that it has parsed.
func (hostProvider) Init([]string) error { return nil }

// Len returns 1.
func (hostProvider) Len() int { return 1 }

// Next returns a name that stands for the next server, and never asks for a pause.
func (hostProvider) Next() (server string, retryStart bool) { return "the next server", false }

// Connected does nothing.
func (hostProvider) Connected() {}
