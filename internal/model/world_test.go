package model

import "slices"

// The bounds of the arrays. A machine that needs more panics.
const (
	maxClients  = 4
	maxLog      = 4
	maxRequests = 8
)

// world is a state: servers, their agreed transactions, clients. It is a plain value; a copy is another state.
type world struct {
	base    tree // what every server has applied
	head    tree // base and the log
	log     [maxLog]txn
	logged  int8
	applied [2]int8 // how much of the log a server has applied
	number  int8    // of the next node
	faults  int8    // so many may still come
	clients [maxClients]client
}

// client is a member of the recipe, its session, and its connection.
type client struct {
	at       int8 // what it does: one of the phases
	wants    int8 // how many more times the client wants the recipe
	attempt  int8
	own      int8 // the number of its place
	before   int8 // the name of the place that it waits for
	server   int8 // that it is connected to
	seen     int8 // so much of the log it has seen
	excused  bool // another client deleted its node while it held: it gets the event later
	over     bool // the servers have ended its session, and it does not know
	lingers  bool // the servers keep the session that it has left
	waiting  bool // for the answer to a write
	late     bool // an event is on the way to it
	watch    int8 // the name of the place that it watches
	watchOwn bool // it watches its own node
	watchAll bool // it watches the leases
	alone    bool // one place alone was before its own: for what is broken on purpose
	fresh    bool // a latch is elected and an outage came before it led: the same
	roomy    bool // there was a lease before the list: the same
	requests [maxRequests]request
	count    int8 // of requests
}

// request is a request that the server has not processed.
type request struct{ op, kind, number, attempt int8 }

// name returns the name of the node that a request is about, none if it does not have one.
func (r request) name() int8 {
	switch r.op {
	case opCreateAt, opTake, opWatch:
		return r.number
	}
	return none
}

// The requests of clients, and the changes to the tree.
const (
	opCreate      int8 = iota // a node with the next number
	opCreateAt                // a node with a given number
	opNothing                 // a transaction that changes nothing
	opTake                    // a lease for a turn
	opLeave                   // deletes the nodes of an attempt
	opEnd                     // of a session
	opDelete                  // another client deletes a node
	opWipe                    // another client deletes the whole line
	opFind                    // finds the place of a create whose answer was lost
	opList                    // lists the line
	opWatch                   // reads and watches the place before the own
	opUnwatch                 // takes the watches back
	opOwn                     // reads and watches the own place
	opCount                   // counts the leases
	opWatchLeases             // lists and watches the leases
	opFindLeases              // finds the lease of a transaction whose answer was lost
	firstRead     = opFind
)

var opNames = []string{
	"create", "create with the writer's number", "transaction that changes nothing",
	"transaction [create lease, delete turn]", "delete", "end of the session", "delete by an operator",
	"delete of the whole line", "search for its node", "list of the line", "watch of the place before",
	"removal of the watch", "watch of its own node", "count of the leases", "list and watch of the leases",
	"search for its lease",
}

// view is the tree of a server.
func (w *world) view(server int8) tree {
	t := w.base
	for _, x := range w.log[:w.applied[server]] {
		t.apply(x)
	}
	return t
}

// send queues requests, which travel together.
func (c *client) send(requests ...request) {
	for _, r := range requests {
		r.attempt = c.attempt
		c.requests[c.count] = r
		c.count++
	}
}

// watches reports whether the client has a watch, or one is on its way.
func (c *client) watches() bool {
	return c.watch != none || c.watchOwn || c.watchAll || slices.ContainsFunc(c.requests[:c.count], func(r request) bool {
		return r.op == opWatch || r.op == opOwn || r.op == opWatchLeases
	})
}

// pop takes the oldest request.
func (c *client) pop() request {
	r := c.requests[0]
	copy(c.requests[:], c.requests[1:])
	c.count--
	c.requests[c.count] = request{}
	return r
}

// disconnect ends the connection. Pending requests are lost, but deletes and the removal of a watch are guaranteed: the
// client retries or forgets them. The watch of the place before is set again on the next connection; a member that has
// another one reads again in any case.
func (w *world) disconnect(i int8) {
	c := &w.clients[i]
	c.server, c.waiting, c.watchOwn, c.watchAll, c.late = none, false, false, false, false
	requests, count := c.requests, c.count
	c.requests, c.count = [maxRequests]request{}, 0
	for _, r := range requests[:count] {
		switch r.op {
		case opLeave:
			c.requests[c.count] = r
			c.count++
		case opUnwatch:
			c.watch = none
		}
	}
	for n := range w.log[:w.logged] {
		if w.log[n].client == i {
			w.log[n].awaited = false
		}
	}
}

// renew ends the client's session. The servers end it now, or have done so already.
func (w *world) renew(i int8) {
	c := &w.clients[i]
	w.disconnect(i)
	c.watch = none
	c.lingers, c.over = !c.over, false
	c.seen = w.logged // the next session is agreed on later
	for _, t := range []*tree{&w.base, &w.head} {
		for n := range t.all() {
			if t.nodes[n].owner == i {
				t.nodes[n].old = true
			}
		}
	}
	for n := range w.log[:w.logged] {
		if w.log[n].client == i {
			w.log[n].old = true
		}
	}
}

// ending reports whether the end of a session of the client is still to be applied.
func (w *world) ending(i int8) bool {
	if w.clients[i].lingers || w.clients[i].over {
		return true
	}
	for _, x := range w.log[:w.logged] {
		if x.op == opEnd && x.client == i {
			return true
		}
	}
	return false
}

// agree appends a transaction to the log.
func (w *world) agree(x txn) {
	w.log[w.logged] = x
	w.logged++
	w.head.apply(x)
}

// advance drops the transactions that every server has applied.
func (w *world) advance(servers int8) {
	for _, n := range w.applied[:servers] {
		if n == 0 {
			return
		}
	}
	w.base.apply(w.log[0])
	copy(w.log[:], w.log[1:])
	w.logged--
	w.log[w.logged] = txn{}
	for s := range w.applied[:servers] {
		w.applied[s]--
	}
	for i := range w.clients {
		w.clients[i].seen = max(0, w.clients[i].seen-1)
	}
}
