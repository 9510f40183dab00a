package wire

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// Limits of the pauses between two passes over the servers, and of the first try's patience with one server. A
// server that is starting accepts connections and never answers those, so patience is short at first. It grows with
// each pass in which a server has used it up: refused connections, however many, do not count.
const (
	minPause    = 20 * time.Millisecond
	maxPause    = time.Second
	minPatience = time.Second
	maxDoubling = 16

	// A connection that has lasted this long shows that its server is well. At first an answer shows it too. When many
	// connections in a row had an answer and did not last, there are pauses too.
	lasting   = time.Second
	flapPause = 10 * time.Millisecond
	manyFlaps = 64 // number of such connections after which the pause doubles
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

// Hosts is the list of servers, with the results of earlier tries. The sessions of a client share it: the next session
// is another [Conn], and must not retry a server that ends every session at once without a pause. The zero value is
// ready.
type Hosts struct {
	// Jitter returns a random duration of at most this length; nil uses math/rand. It is set before the first use.
	Jitter func(most time.Duration) time.Duration

	mu         sync.Mutex
	servers    []string                 // shuffled, unless they are in the order of the program
	ordered    bool                     // servers are in the order of the program
	version    int                      // changes with servers
	isNew      bool                     // no server of the list was tried yet
	first      *target                  // the target to try before all others, or nil
	rest       []target                 // the targets that this pass still has to try
	last       target                   // the target that was tried last
	passes     int                      // number of passes since a connection has shown that its server is well
	tried      time.Time                // when the last try began
	patience   time.Duration            // of the last try: the time that the server had to answer
	timedOut   bool                     // a try of this pass has used up its patience
	slowPasses int                      // number of earlier passes with a try that used up its patience
	flaps      int                      // number of connections in a row that had an answer and did not last
	passSize   int                      // number of targets in a pass; an unresolved server counts as one
	proof      *proof                   // the last connection, until review has evaluated it
	failure    error                    // the error of the last try; nil while a connection stands
	failing    bool                     // the first failure was reported, and no server was well since
	wasServed  bool                     // the servers serve this client, as far as is known
	refusals   map[string]error         // why servers refuse the login, since the last connection; may be nil
	refusing   map[string]error         // the same, of names whose other addresses are still to be tried; may be nil
	single     bool                     // the last try is outside of a pass: of one address, whatever others there are
	calls      map[string]chan struct{} // closed when the running function of the program with this key returns
	hangUps    map[jute.Op]*hangUp      // kinds of requests at which connections have ended; may be nil
	anyHangUp  atomic.Bool              // hangUps is not empty
	answers    map[jute.Op]bool         // the optional kinds of requests that a server has answered; may be nil
	repeats    int                      // number of connections in a row, above a few, that ended at the same other kind
	enders     map[ender]time.Time      // when a request with this kind and path had ended many; may be nil
	anyEnder   atomic.Bool              // enders is not empty
}

// proof is an established connection that may show that its server is well.
type proof struct {
	conn         *Conn
	since        time.Time
	answerBefore int64 // Conn.lastAnswer when the connection was established
}

// review evaluates the last connection. mu is held.
func (h *Hosts) review() {
	p := h.proof
	if p == nil {
		return
	}
	h.proof = nil
	switch {
	case time.Since(p.since) >= lasting:
		h.flaps, h.repeats = 0, 0
	case p.conn.lastAnswer.Load() > p.answerBefore:
		h.flaps++
	default: // without an answer it counts as a failure
		return
	}
	h.passes, h.rest, h.failing = 0, nil, false
	h.timedOut, h.slowPasses = false, 0
}

// update replaces the list, unless the new one is empty or the same. The next try is of a server of the new list.
func (h *Hosts) update(servers []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(servers) == 0 || slices.Equal(sorted(servers), sorted(h.servers)) {
		return
	}
	if !slices.ContainsFunc(h.servers, func(s string) bool { return slices.Contains(servers, s) }) {
		h.forgetHangUps() // they are of others
	}
	h.servers = slices.Clone(servers)
	rand.Shuffle(len(servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
	h.version++
	h.first, h.rest, h.isNew, h.ordered = nil, nil, true, false
	h.refusing, h.single = nil, true
	maps.DeleteFunc(h.refusals, func(server string, _ error) bool { return !slices.Contains(servers, server) })
}

// unordered returns the servers if the next pass is to ask the program for their order: in the first pass since a
// server was well.
func (h *Hosts) unordered() (servers []string, version int, ask bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.review()
	return slices.Clone(h.servers), h.version, h.first == nil && len(h.rest) == 0 && (h.passes == 0 || !h.ordered)
}

// setOrder sets the order of the servers, unless the list has changed. What the program has left out comes last, and
// what it has made up is ignored.
func (h *Hosts) setOrder(servers []string, version int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.version != version {
		return
	}
	order := make([]string, 0, len(h.servers))
	for _, server := range slices.Concat(servers, h.servers) {
		if slices.Contains(h.servers, server) && !slices.Contains(order, server) {
			order = append(order, server)
		}
	}
	h.servers, h.ordered = order, true
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// list returns the servers and the version of the list.
func (h *Hosts) list() ([]string, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.servers), h.version
}

// isCurrent reports whether the list still has this version.
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

// begin begins a pass over the servers, in order, with the one after the server that was tried last. An order of the
// program counts from its first server on, but for a server whose connections do not last: others come before it. mu is
// held.
func (h *Hosts) begin() {
	from := 1 + slices.Index(h.servers, h.last.server)
	if h.ordered {
		from = 0
	}
	h.rest = h.rest[:0]
	for i := range h.servers {
		h.rest = append(h.rest, target{server: h.servers[(from+i)%len(h.servers)]})
	}
	if h.ordered && h.flaps > 0 && slices.Contains(h.servers, h.last.server) {
		flapping := func(t target) bool { return t.server == h.last.server }
		h.rest = append(slices.DeleteFunc(h.rest, flapping), target{server: h.last.server})
	}
	h.passSize = len(h.servers)
	h.passes++
	if h.timedOut {
		h.timedOut = false
		h.slowPasses++
	}
	h.isNew = false
}

// size returns the number of targets in a pass.
func (h *Hosts) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.passSize, len(h.servers), 1)
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
		pause = min(flapPause<<min((h.flaps-1)/manyFlaps+h.repeats, maxDoubling), maxPause)
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

// pick returns the next target, and the time, at most limit, that it has to accept and to answer the handshake.
func (h *Hosts) pick(limit time.Duration) (target, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.rest) == 0 {
		h.begin()
	}
	var t target
	h.single = h.first != nil
	if h.single {
		t, h.first = *h.first, nil
	} else {
		t, h.rest = h.rest[0], h.rest[1:]
	}
	h.tried, h.patience = time.Now(), min(limit, minPatience<<min(h.slowPasses, maxDoubling))
	return t, h.patience
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
	h.passSize += len(addresses) - 1
	return all[0]
}

// dialing records the try of t.
func (h *Hosts) dialing(t target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = t
}

// established records that a connection of c stands.
func (h *Hosts) established(c *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proof = &proof{c, time.Now(), c.lastAnswer.Load()}
	h.failure, h.refusals, h.refusing, h.wasServed = nil, nil, nil, true
}

// served reports whether the servers serve this client without a login that it lacks, as far as is known.
func (h *Hosts) served() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wasServed
}

// noteLoginRequired records that a server serves nobody without a login.
func (h *Hosts) noteLoginRequired() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wasServed = false
}

// refusal returns the last refusal of the login if all servers refuse it, or nil.
func (h *Hosts) refusal() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	why := h.refusals[h.last.server]
	for _, server := range h.servers {
		refusal := h.refusals[server]
		if refusal == nil {
			return nil
		}
		if why == nil { // the last try was of a server that is gone from the list
			why = refusal
		}
	}
	return why
}

// noteRefusal records that the last target has refused the login, or else has failed. A name may stand for several
// servers: it refuses the login when each of its addresses was tried, and one has refused. mu is held.
func (h *Hosts) noteRefusal(err error) {
	server := h.last.server
	if errors.Is(err, zk.ErrAuthFailed) {
		if h.refusals == nil {
			h.refusals = make(map[string]error)
		}
		if h.refusing == nil {
			h.refusing = make(map[string]error)
		}
		h.refusing[server] = err
	}
	untried := h.single || slices.ContainsFunc(h.rest, func(t target) bool { return t.server == server })
	if why := h.refusing[server]; why != nil && !untried {
		h.refusals[server] = why
	}
}

// lost records the end of an established connection. It evaluates that connection now, so that the next failure to
// connect counts as the first one if the server was well.
func (h *Hosts) lost(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.review()
	h.failure = err
}

// failed records a failure to connect. It reports whether it is the first failure since a connection has shown that its
// server is well.
func (h *Hosts) failed(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = err
	h.noteRefusal(err)
	h.timedOut = h.timedOut || time.Since(h.tried) >= h.patience
	first := !h.failing
	h.failing = true
	return first
}

// lastError returns the last failure, or nil while a connection stands.
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

// resolve returns the addresses of a server: the server itself if there is nothing to look up.
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

// Next returns a name that stands for the next server, and never requests a pause.
func (hostProvider) Next() (server string, retryStart bool) { return "the next server", false }

// Connected does nothing.
func (hostProvider) Connected() {}
