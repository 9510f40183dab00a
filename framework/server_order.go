package framework

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/internal/usercode"
)

// ServerOrder is the order in which a client tries the servers when it has no connection. It stays with a server that
// it has found, and does not come back to an earlier one. The zero value is [Shuffled].
type ServerOrder struct {
	order func(ctx context.Context, c *config, servers []string) []string
}

// WithServerOrder sets the order in which servers are tried; the default is [Shuffled].
func WithServerOrder(order ServerOrder) Option { return option(func(c *config) { c.order = order }) }

// Shuffled spreads clients over the servers: each has an order of its own, and goes on behind the server that it has
// lost.
func Shuffled() ServerOrder { return ServerOrder{} }

// AsGiven tries the servers as the connect string names them, from the first one each time: one server and its
// replacements, or a test. A server whose connections do not last is tried after the others.
func AsGiven() ServerOrder {
	return ServerOrder{func(_ context.Context, c *config, servers []string) []string {
		return slices.Concat(c.given(), servers) // wire leaves out what is gone, and what it knows twice
	}}
}

// ByLatency tries the server first that accepts a TCP connection first. It opens a connection to each of them for that,
// when a connection was lost, and does not wait for those that are much slower than the first. Many clients would
// choose one server alike.
func ByLatency() ServerOrder { return ServerOrder{orderByLatency} }

// LocalFirst tries servers on this host first, then those in its networks, then the others. Each of the three groups is
// shuffled.
func LocalFirst() ServerOrder { return ServerOrder{orderByNetwork} }

// OrderedBy tries the servers in the order that a function returns, as by a zone in their names. It gets the servers,
// host:port, shuffled. It is called when a connection is needed, on a goroutine of its own, and has a second. What it
// leaves out is tried last.
func OrderedBy(order func(ctx context.Context, servers []string) []string) ServerOrder {
	if order == nil {
		return ServerOrder{}
	}
	return ServerOrder{func(ctx context.Context, _ *config, servers []string) []string { return order(ctx, servers) }}
}

// orderServers returns the function that orders servers, nil for the order of the connection.
func (c *config) orderServers() func(ctx context.Context, servers []string) []string {
	if c.order.order == nil {
		return nil
	}
	return func(ctx context.Context, servers []string) []string { return c.order.order(ctx, c, servers) }
}

// given returns the servers as the ensemble provider names them.
func (c *config) given() []string {
	target, _ := parseConnectString(c.ensemble.ConnectionString())
	return target.servers
}

// shortWait is how long the others have after the first server, at least.
const shortWait = 50 * time.Millisecond

// orderByLatency returns the servers in the order in which they accept a connection.
func orderByLatency(ctx context.Context, c *config, servers []string) []string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	start := time.Now()
	for _, server := range servers {
		wg.Go(func() {
			var nc net.Conn
			var err error
			panicked := usercode.Call("the dialer", func() { nc, err = c.dial(ctx, "tcp", server) })
			if panicked != nil || err != nil || nc == nil { // the try to connect reports it
				return
			}
			mu.Lock()
			if order = append(order, server); len(order) == 1 {
				time.AfterFunc(max(time.Since(start), shortWait), cancel)
			}
			mu.Unlock()
			_ = nc.Close()
		})
	}
	wg.Wait()
	return order
}

// orderByNetwork returns the servers by their distance.
func orderByNetwork(ctx context.Context, c *config, servers []string) []string {
	networks := localNetworks()
	distances := make(map[string]int, len(servers))
	for _, server := range servers {
		host, _, _ := net.SplitHostPort(server)
		addresses := []string{host}
		if _, err := netip.ParseAddr(host); err != nil {
			addresses, _ = c.resolver.LookupHost(ctx, host)
		}
		distances[server] = farAway
		for _, address := range addresses {
			distances[server] = min(distances[server], distance(address, networks))
		}
	}
	rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	slices.SortStableFunc(servers, func(a, b string) int { return distances[a] - distances[b] })
	return servers
}

// Distances of a server.
const (
	onThisHost = iota
	inANetwork
	farAway
)

// localNetworks returns the addresses of this host, with the networks that they are in.
func localNetworks() []netip.Prefix {
	addresses, _ := net.InterfaceAddrs() // without them all servers are far away
	var networks []netip.Prefix
	for _, a := range addresses {
		if network, err := netip.ParsePrefix(a.String()); err == nil {
			networks = append(networks, network)
		}
	}
	return networks
}

func distance(address string, networks []netip.Prefix) int {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return farAway
	}
	a = a.Unmap().WithZone("")
	least := farAway
	if a.IsLoopback() {
		least = onThisHost
	}
	for _, network := range networks {
		switch {
		case network.Addr() == a:
			least = onThisHost
		case network.Contains(a):
			least = min(least, inANetwork)
		}
	}
	return least
}
