package wire_test

import (
	"context"
	"net"
	"sync"

	"github.com/gocurator/curator/internal/wire"
)

// switchboard is a network that a test changes.
type switchboard struct {
	mu sync.Mutex
	n  network
}

// dialToSwitchboard is the configuration for a client of n, and what changes n.
func dialToSwitchboard(n network) (wire.Config, *switchboard) {
	b := &switchboard{n: n}
	cfg := dialTo(n)
	cfg.Dial = b.dial
	return cfg, b
}

func (b *switchboard) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	b.mu.Lock()
	one := network{address: b.n[address]}
	b.mu.Unlock()
	return one.dial(ctx, kind, address)
}

func (b *switchboard) set(address string, s *server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n[address] = s
}
