package simulation_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/zkpath"
)

// Events of desired nodes.
const (
	quietNodes   = "desired nodes in quiet times"
	writtenNodes = "data of desired nodes that were written"
	refusedNodes = "desired nodes that are refused"
)

// settleLimit bounds the time after a fault until each desired node is there, if nothing is refused.
const settleLimit = 3 * sessionTimeout

// desiredNodes are the nodes that the processes of a world desire, and the members of its group. The data of a node has
// the name of its desire and the number of the data: so the judge knows each node of the servers.
type desiredNodes struct {
	world   *world
	nodes   string // path of their parent
	group   string
	service string // path of the service of registered instances

	mu      sync.Mutex
	desires []*desire
	names   map[string]*desire
}

// desire is a node that a process desires from Start to Close.
type desire struct {
	name      string
	process   *process
	client    *framework.Client
	node      keptNode
	ephemeral bool

	set     int       // number of the data that the process has set last
	since   time.Time // when that was
	seen    int       // number of the newest data that the servers have had
	present bool      // as the listener has it
	closing bool      // Close was called
	closed  bool      // Close has succeeded
}

// keptNode is a persistent node or a member of a group.
type keptNode interface {
	AddListener(fn func(ctx context.Context, ev nodes.Event)) (remove func())
	Start() error
	WaitForInitialCreate(ctx context.Context) error
	SetData(ctx context.Context, data []byte) error
	Err() error
	Close(ctx context.Context) error
}

// persistent is a PersistentNode as a keptNode.
type persistent struct{ *nodes.PersistentNode }

func (p persistent) AddListener(fn func(ctx context.Context, ev nodes.Event)) (remove func()) {
	return p.PersistentNode.AddListener(fn)
}

// member is a GroupMember as a keptNode.
type member struct{ *nodes.GroupMember }

func (m member) WaitForInitialCreate(ctx context.Context) error { return m.Ready(ctx) }

func (m member) SetData(ctx context.Context, data []byte) error { return m.SetThisData(ctx, data) }

// nodesRecipe is desired nodes and a member of a group in each process.
func nodesRecipe(w *world) recipe {
	d := newDesiredNodes(w)
	w.desired = append(w.desired, d)
	return recipe{name: "nodes", actors: []role{{"desires", d.keep}, {"joins", d.join}, {"registers", d.register}}}
}

func newDesiredNodes(w *world) *desiredNodes {
	return &desiredNodes{
		world: w, nodes: "/nodes", group: "/group", service: "/services/orders", names: map[string]*desire{},
	}
}

// keep keeps some nodes for a while, again and again. A process has the same paths as the one before it in its slot.
func (d *desiredNodes) keep(ctx context.Context, a *actor) {
	for turn := 1; ctx.Err() == nil; turn++ {
		last := d.world.isCalm()
		count := 1 + a.random.IntN(4)
		if a.random.IntN(3) == 0 { // they share a watch
			count = 8 + a.random.IntN(4)
		}
		together(a, count, func(i int, random *rand.Rand) {
			name := fmt.Sprintf("%s.%d.%d", a.name, turn, i)
			path := fmt.Sprintf("%s/%s-%d", d.nodes, a.process.slot(), i)
			mode, opts := builders.Ephemeral, []nodes.NodeOption(nil)
			switch {
			case i == 0 && (last || random.IntN(3) == 0): // the last one deletes what a process has left
				path += "-persistent"
				mode = builders.Persistent
			case random.IntN(3) == 0:
				path += "-sequential-"
				mode = builders.EphemeralSequential
			}
			if mode.IsSequential() && random.IntN(2) == 0 {
				opts = append(opts, nodes.WithProtection())
			}
			d.desire(ctx, a, random, last, &desire{
				name: name, ephemeral: mode.IsEphemeral(),
				node: persistent{nodes.NewPersistentNode(a.client, path, mode, dataOf(name, 1), opts...)},
			})
		})
		if last {
			return
		}
		a.pause(ctx, d.world.calm, 4*time.Second)
	}
}

// join is a member of the group for a while, again and again.
func (d *desiredNodes) join(ctx context.Context, a *actor) {
	for turn := 1; ctx.Err() == nil; turn++ {
		last := d.world.isCalm()
		name := fmt.Sprintf("%s.%d", a.name, turn)
		m := nodes.NewGroupMember(a.client, d.group, a.process.slot(), dataOf(name, 1))
		d.desire(ctx, a, a.random, last, &desire{name: name, ephemeral: true, node: member{m}})
		if last {
			return
		}
		a.pause(ctx, d.world.calm, 4*time.Second)
	}
}

// desire keeps one node for a while, and sets its data. The last time it does so until the node has been there for a
// while without faults.
func (d *desiredNodes) desire(ctx context.Context, a *actor, random *rand.Rand, last bool, k *desire) {
	k.process, k.client = a.process, a.client
	k.node.AddListener(func(_ context.Context, ev nodes.Event) { d.notified(k, ev) })
	d.add(k)
	if err := k.node.Start(); err != nil {
		d.world.history.note("%s: %v", k.name, err)
		d.mu.Lock()
		k.closing = true
		d.mu.Unlock()
		return
	}
	defer d.close(ctx, a, random, k)
	d.try(ctx, a, random, last, k, 1, k.node.WaitForInitialCreate)
	for range random.IntN(4) {
		wait(ctx, within(random, 3*time.Second))
		d.setNext(ctx, a, random, last, k)
	}
	if !last {
		wait(ctx, within(random, d.world.longestHold(random)))
		return
	}
	d.setNext(ctx, a, random, last, k)
	for !d.world.isQuiet(settleLimit) && wait(ctx, time.Second) {
	}
	wait(ctx, time.Second) // the judge looks at it
	switch node := k.node.(type) {
	case member:
		d.awaitKnown(ctx, d.group, "a member", node.CurrentMembers)
	case *registered:
		d.awaitKnown(ctx, d.service, "a cache", node.known)
	}
}

// awaitKnown waits until a process knows all nodes of a parent, by their names.
func (d *desiredNodes) awaitKnown(ctx context.Context, parent, who string, knows func() map[string][]byte) {
	var known, there string
	for deadline := time.Now().Add(settleLimit); ctx.Err() == nil; wait(ctx, 100*time.Millisecond) {
		leader, err := d.world.cluster.Leader()
		if err != nil {
			continue
		}
		there = ""
		for _, name := range leader.Children(parent) {
			node, _ := leader.Node(zkpath.Join(parent, name))
			there += fmt.Sprintf("%s=%s ", name, node.Data)
		}
		nodes := knows()
		known = ""
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			known += fmt.Sprintf("%s=%s ", name, nodes[name])
		}
		if known == there {
			return
		}
		if time.Now().After(deadline) {
			d.world.violate("%s of %s knows %s, and there are %s", who, parent, known, there)
			return
		}
	}
}

func (d *desiredNodes) setNext(ctx context.Context, a *actor, random *rand.Rand, last bool, k *desire) {
	d.mu.Lock()
	k.set++
	k.since = time.Now()
	number := k.set
	d.mu.Unlock()
	d.try(ctx, a, random, last, k, number, func(ctx context.Context) error {
		return k.node.SetData(ctx, dataOf(k.name, number))
	})
}

// try calls fn once, or the last time until it succeeds. When it succeeds, the servers have had the data of a number.
func (d *desiredNodes) try(
	ctx context.Context, a *actor, random *rand.Rand, last bool, k *desire, number int, fn func(ctx context.Context) error,
) {
	for ctx.Err() == nil {
		bounded, cancel := ctx, context.CancelFunc(func() {})
		if !last && random.IntN(2) == 0 {
			bounded, cancel = context.WithTimeout(ctx, within(random, 10*time.Second))
		}
		err := fn(bounded)
		cancel()
		if err == nil {
			d.wrote(k, number)
			return
		}
		d.world.history.note("%s: %v", k.name, err)
		if !last {
			return
		}
		a.pause(ctx, nil, time.Second)
	}
}

// close closes the node. Sometimes it does not wait.
func (d *desiredNodes) close(ctx context.Context, a *actor, random *rand.Rand, k *desire) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if !d.world.isCalm() && random.IntN(4) == 0 {
		cancel()
	}
	d.mu.Lock()
	k.closing = true
	d.mu.Unlock()
	err := k.node.Close(ctx)
	if err != nil {
		d.world.history.note("%s: %v", k.name, err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k.closed = !a.process.dead.Load() && !a.process.left.Load()
}

func (d *desiredNodes) add(k *desire) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k.set, k.since = 1, time.Now()
	d.names[k.name] = k
	d.desires = append(d.desires, k)
}

// notified judges an event: the node comes and goes in turns.
func (d *desiredNodes) notified(k *desire, ev nodes.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ev.Type == nodes.Refused {
		d.world.history.note("%s is refused: %v", k.name, ev.Err)
		d.world.report.count(refusedNodes)
		return
	}
	d.world.history.note("%s is %v: %s", k.name, ev.Type, ev.Path)
	if k.present == (ev.Type == nodes.Created) {
		d.world.violate("%s is %v twice", k.name, ev.Type)
	}
	k.present = ev.Type == nodes.Created
}

// wrote judges a call that has succeeded: the servers have had the data of a number, and not older data since. The
// judge looks from time to time: of writes that were held by a fault, and take effect at one moment, it sees the last,
// which may be that of an operator. Without a fault it sees all.
func (d *desiredNodes) wrote(k *desire, number int) {
	leader, err := d.world.cluster.Leader()
	if err != nil { // no server has a quorum
		return
	}
	there := d.observe(leader)[k]
	d.mu.Lock()
	defer d.mu.Unlock()
	d.world.report.count(writtenNodes)
	if k.seen < number && (len(there) > 0 || d.world.isQuiet(settleLimit)) {
		d.world.violate("%s: data %d is written, and the servers have %s", k.name, number, describe(there))
	}
}

// observe judges the nodes of the leader, and returns those of each desire.
func (d *desiredNodes) observe(leader *curatortest.Server) (there map[*desire][]curatortest.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	there = map[*desire][]curatortest.Node{}
	for _, parent := range []string{d.nodes, d.group, d.service} {
		for _, name := range leader.Children(parent) {
			node, _ := leader.Node(zkpath.Join(parent, name))
			k, number := d.desireOf(node.Data)
			if k == nil {
				continue
			}
			there[k] = append(there[k], node)
			k.seen = max(k.seen, number)
			isOurs := k.ephemeral == (node.Stat.EphemeralOwner != 0) // an operator's node may have got the data
			if k.closed && isOurs {
				d.world.violate("%s is closed, and its node is there: %s, czxid %#x", k.name, name, node.Stat.Czxid)
			}
		}
	}
	d.desires = slices.DeleteFunc(d.desires, func(k *desire) bool { return k.closed && len(there[k]) == 0 })
	quiet := d.world.isQuiet(settleLimit)
	for _, k := range d.desires {
		d.judgeOne(k, there[k])
		if quiet {
			d.judgeSettled(k, there[k])
		}
	}
	return there
}

// judgeOne looks for a second node in one session, or without one. A node of an earlier session goes with that.
func (d *desiredNodes) judgeOne(k *desire, there []curatortest.Node) {
	for i, one := range there {
		for _, other := range there[:i] {
			if one.Stat.EphemeralOwner == other.Stat.EphemeralOwner {
				d.world.violate("%s has two nodes: czxid %#x and %#x", k.name, other.Stat.Czxid, one.Stat.Czxid)
			}
		}
	}
}

// judgeSettled compares the node with the desired one, in a quiet time.
func (d *desiredNodes) judgeSettled(k *desire, there []curatortest.Node) {
	if k.closing || k.process.dead.Load() || k.process.left.Load() || time.Since(k.since) < settleLimit ||
		k.process.wasSuspended(time.Now().Add(-settleLimit)) || k.node.Err() != nil {
		return
	}
	d.world.report.count(quietNodes)
	session := int64(0)
	if k.ephemeral {
		session = k.client.SessionID()
	}
	if !slices.ContainsFunc(there, func(n curatortest.Node) bool {
		_, number := d.desireOf(n.Data)
		return n.Stat.EphemeralOwner == session && number == k.set
	}) {
		d.world.violate("%s is not there with data %d in session %#x, but %s", k.name, k.set, session, describe(there))
	}
}

// describe returns the data and the sessions of nodes.
func describe(all []curatortest.Node) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = fmt.Sprintf("%s of session %#x", n.Data, n.Stat.EphemeralOwner)
	}
	return fmt.Sprintf("%q", texts)
}

// dataOf returns data of a desire.
func dataOf(name string, number int) []byte { return fmt.Appendf(nil, "%s#%d", name, number) }

// desireOf returns the desire of data and the number of the data, or nil for data of somebody else.
func (d *desiredNodes) desireOf(data []byte) (*desire, int) {
	name, text, _ := strings.Cut(string(data), "#")
	number, _ := strconv.Atoi(text) // 0 is that of nobody
	return d.names[name], number
}

// remains returns the nodes that are there.
func (d *desiredNodes) remains(leader *curatortest.Server) (left []string) {
	for _, parent := range []string{d.nodes, d.group, d.service} {
		for _, name := range leader.Children(parent) {
			path := zkpath.Join(parent, name)
			node, _ := leader.Node(path)
			left = append(left, fmt.Sprintf("%s (%s, of session %#x)", path, node.Data, node.Stat.EphemeralOwner))
		}
	}
	return left
}
