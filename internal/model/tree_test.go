package model

import "slices"

// none is no node, or no server.
const none int8 = -1

// The kinds of nodes.
const (
	place  int8 = iota // in a line: a lock's, a latch's, a turn's, a writer's
	reader             // a reader's place in the line of a read-write lock
	lease              // one of a semaphore's leases; the line is elsewhere
	every              // of any kind, in a request
)

// node is an ephemeral znode. All nodes of one transaction are one node here.
type node struct {
	kind    int8
	number  int8 // what the server appends to its name
	owner   int8 // a client
	attempt int8 // stands for the id in a protected name
	old     bool // it belongs to a session that its owner has left
}

// tree is the state of a server, in the order of the numbers.
type tree struct {
	nodes [8]node
	count int8
}

func (t *tree) all() []node { return t.nodes[:t.count] }

func (t *tree) add(n node) {
	t.nodes[t.count] = n
	t.count++
}

func (t *tree) remove(which func(n node) bool) {
	kept := slices.DeleteFunc(t.all(), which) // which zeroes the rest
	t.count = int8(len(kept))
}

func (t *tree) has(which func(n node) bool) bool { return slices.ContainsFunc(t.all(), which) }

// name is the name of a place or a reader's place: its kind and number.
func (n node) name() int8 { return n.kind<<5 | n.number }

// named reports whether there is a place of that name.
func (t *tree) named(name int8) bool {
	return t.has(func(n node) bool { return n.kind != lease && n.name() == name })
}

// of reports whether the client has a node of a kind from this attempt and its present session.
func (t *tree) of(client, kind, attempt int8) bool {
	return t.has(func(n node) bool {
		return n.owner == client && n.kind == kind && n.attempt == attempt && !n.old
	})
}

// leases returns the number of nodes that stand for leases.
func (t *tree) leases() (count int8) {
	for _, n := range t.all() {
		if n.kind == lease {
			count++
		}
	}
	return count
}

// txn is a transaction that the servers have agreed on.
type txn struct {
	op, client, kind, number, attempt int8
	old                               bool // of a session that its client has left
	done                              bool // it changes something
	awaited                           bool // its client waits for the answer
}

// names returns the number of the node that a transaction is about, none if it is about none or several.
func (x txn) names() int8 {
	switch x.op {
	case opCreate, opCreateAt, opTake, opDelete:
		return x.number
	}
	return none
}

// apply applies a transaction, the same on every server.
func (t *tree) apply(x txn) {
	if !x.done {
		return
	}
	switch x.op {
	case opCreate, opCreateAt:
		t.add(node{kind: x.kind, number: x.number, owner: x.client, attempt: x.attempt, old: x.old})
	case opTake: // the lease is created, the turn is deleted, or neither
		t.remove(func(n node) bool { return n.kind == place && n.number == x.number })
		t.add(node{kind: lease, number: x.number, owner: x.client, attempt: x.attempt, old: x.old})
	case opLeave:
		t.remove(func(n node) bool {
			return n.owner == x.client && n.attempt == x.attempt && (x.kind == every || n.kind == x.kind)
		})
	case opDelete:
		t.remove(func(n node) bool { return n.kind == x.kind && n.number == x.number && n.owner == x.client })
	case opWipe:
		t.remove(func(n node) bool { return n.kind != lease })
	case opEnd:
		t.remove(func(n node) bool { return n.owner == x.client && n.old == x.old })
	}
}
