package curatortest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
)

// network connects the servers of a [RealCluster].
type network struct {
	relays map[pair]relayPair

	mu     sync.Mutex
	parted int // number of partitions
}

// pair is the numbers of a server that connects and of its target.
type pair struct{ from, to int }

// relayPair has the relays to the two ports of a server.
type relayPair struct{ quorum, election *relay }

func (p relayPair) each(do func(*relay)) {
	for _, r := range []*relay{p.quorum, p.election} {
		if r != nil {
			do(r)
		}
	}
}

// memberPorts are the ports at which a server listens to the others.
type memberPorts struct{ quorum, election int }

// newNetwork makes the relays between servers.
func newNetwork(members map[int]memberPorts) (*network, error) {
	n := &network{relays: map[pair]relayPair{}}
	for from := range members {
		for to, ports := range members {
			if from == to {
				continue
			}
			quorum, err := newRelay(net.JoinHostPort(loopback, fmt.Sprint(ports.quorum)))
			if err == nil {
				n.relays[pair{from, to}] = relayPair{quorum: quorum}
				var election *relay
				election, err = newRelay(net.JoinHostPort(loopback, fmt.Sprint(ports.election)))
				n.relays[pair{from, to}] = relayPair{quorum, election}
			}
			if err != nil {
				return nil, errors.Join(err, n.close())
			}
		}
	}
	for way, relays := range n.relays {
		relays.election.callBack = n.relays[pair{way.to, way.from}].election.addr()
		relays.each((*relay).start)
	}
	return n, nil
}

// spec returns the line of the ensemble's configuration that describes a server to another one.
func (n *network) spec(to, of *RealServer) string {
	relays := n.relays[pair{to.id, of.id}]
	_, quorum, _ := net.SplitHostPort(relays.quorum.addr())     //nolint:errcheck // an address of the system
	_, election, _ := net.SplitHostPort(relays.election.addr()) //nolint:errcheck // likewise
	return fmt.Sprintf("server.%d=%s:%s:%s%s;%s:%d", of.id, loopback, quorum, election, of.role(), loopback, of.port)
}

// part separates the servers whose sides differ, and connects the others.
func (n *network) part(sides map[int]int) (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apply(sides)
	n.parted++
	mine := n.parted
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.parted == mine {
			n.apply(nil)
		}
	}
}

func (n *network) apply(sides map[int]int) {
	for way, relays := range n.relays {
		relays.each(func(r *relay) { r.part(sides[way.from] != sides[way.to]) })
	}
}

func (n *network) close() error {
	var errs []error
	for _, relays := range n.relays {
		relays.each(func(r *relay) { errs = append(errs, r.close()) })
	}
	return errors.Join(errs...)
}

// WithPartitions connects the servers of a [RealCluster] through this process, so that [RealCluster.Partition] can
// separate them. Each server has other addresses of the others, so a reconfiguration is not possible.
func WithPartitions() RealOption { return realOption(func(s *RealServer) { s.partitions = true }) }

// ErrNoPartitions is the error of a Partition of a [RealCluster] without [WithPartitions].
var ErrNoPartitions = errors.New("curatortest: the cluster was started without WithPartitions")

// Partition separates the servers from each other, as [Cluster.Partition] does: the servers of one group stay
// connected; a server in no group is alone. Between separated servers no byte arrives and no connection ends until
// heal. Their bytes arrive late then, as after the loss of packets. Clients reach every server. heal ends the
// partition. It does nothing after another partition has replaced it. A server notices the loss of its leader after
// [WithSyncLimit]. The error wraps [ErrNoPartitions].
func (c *RealCluster) Partition(groups ...[]*RealServer) (heal func(), err error) {
	if c.network == nil {
		return nil, ErrNoPartitions
	}
	sides := map[int]int{}
	for _, s := range c.servers {
		sides[s.id] = -s.id // alone
		for g, group := range groups {
			if slices.Contains(group, s) {
				sides[s.id] = g
			}
		}
	}
	return c.network.part(sides), nil
}
