package wire

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Limits of the pauses between two passes over the servers, and of the first try's patience with one server. A
// server that is starting accepts connections and answers none of them, so the first passes are impatient.
const (
	minPause     = 20 * time.Millisecond
	maxPause     = time.Second
	minPatience  = time.Second
	flapLifetime = 100 * time.Millisecond
	flapPause    = 10 * time.Millisecond
)

// hosts is the library's host provider. It never asks for the library's pause of one second after a pass over all
// servers; the pauses are in [hosts.wait], which the dialer calls.
type hosts struct {
	mu        sync.Mutex
	servers   []string
	next      int
	tried     int // dials since the last session was established
	connected time.Time
}

func newHosts(servers []string) *hosts {
	return &hosts{servers: shuffled(servers)}
}

func shuffled(servers []string) []string {
	s := slices.Clone(servers)
	rand.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return s
}

// update replaces the list, unless the new one is empty; the current connection stays.
func (h *hosts) update(servers []string) {
	if len(servers) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.next = shuffled(servers), 0
}

func (h *hosts) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.servers)
}

// prefer makes server the next to be tried.
func (h *hosts) prefer(server string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.servers, server); i >= 0 {
		h.next = i
	}
}

// Init is called by the library with the list that it has parsed; ours is set already.
func (h *hosts) Init([]string) error { return nil }

// Len returns the number of servers.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next returns the next server to try.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next%len(h.servers)]
	h.next = (h.next + 1) % len(h.servers)
	return server, false
}

// Connected is called by the library when a session is established.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.connected = 0, time.Now()
}

// exhausted reports whether every server was tried since the last session was established.
func (h *hosts) exhausted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tried >= len(h.servers)
}

// wait pauses before a dial: not at all in the first pass over the servers, then longer from pass to pass. It
// returns how long the server may take to accept and to answer the handshake, at most limit.
func (h *hosts) wait(ctx context.Context, limit time.Duration) (patience time.Duration, err error) {
	h.mu.Lock()
	pass := min(h.tried/len(h.servers), 16)
	var pause time.Duration
	switch {
	case h.tried == 0 && !h.connected.IsZero() && time.Since(h.connected) < flapLifetime:
		pause = flapPause // accepted and dropped at once: do not spin
	case pass > 0 && h.tried%len(h.servers) == 0:
		pause = min(minPause<<(pass-1), maxPause)
		pause = pause/2 + rand.N(pause/2+1)
	}
	h.tried++
	h.mu.Unlock()
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return min(limit, minPatience<<pass), ctx.Err()
}
