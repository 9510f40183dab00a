package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// action is the kind of a step.
type action int

const (
	doRequests   action = iota // sends requests at once and reads the answers
	doAuth                     // adds an identity
	doSetWatches               // sets watches again, and requests the missed events
	doReconnect                // drops the connection and takes the session to another
	doNewSession               // ends the session and begins another
	doOffend                   // sends what makes the server end the connection, and comes back
	actionsEnd
)

// step is one step of a sequence: of which client, and what. It depends on no answer, so that a sequence without some
// of its steps is a sequence too.
type step struct {
	client   int
	action   action
	requests []jute.Request
	auth     jute.Auth
	watches  jute.SetWatches // RelativeZxid counts back from the newest that the client has received
	op       jute.Op         // of setWatches, or the one that offends
}

const clients = 2

// generator makes sequences.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0x6375726174))}
}

func (g generator) sequence(n int) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = g.step()
	}
	return steps
}

func (g generator) step() step {
	s := step{client: g.IntN(clients)}
	switch p := g.IntN(1000); {
	case p < 15:
		s.action, s.auth = doAuth, jute.Auth{Scheme: schemeDigest, Auth: []byte(pick(g, "u1:p1", "u2:p2", "odd"))}
	case p < 35:
		s.action, s.op, s.watches = doSetWatches, jute.OpSetWatches2, g.watches()
		if g.IntN(4) == 0 {
			s.op, s.watches.Persistent, s.watches.Recursive = jute.OpSetWatches, nil, nil
		}
	case p < 50:
		s.action, s.op, s.watches = doReconnect, jute.OpSetWatches2, g.watches()
	case p < 60:
		s.action = doNewSession
	case p < 64:
		s.action, s.op = doOffend, pick(g, jute.Op(77), jute.OpAuth)
	default:
		s.action = doRequests
		n := 1
		if g.IntN(4) == 0 {
			n += 1 + g.IntN(4)
		}
		for range n {
			s.requests = append(s.requests, g.request())
			if endsBurst(&s.requests[len(s.requests)-1]) {
				break
			}
		}
	}
	return s
}

func (g generator) request() jute.Request {
	r := jute.Request{Path: g.path()}
	switch p := g.IntN(100); {
	case p < 22:
		g.create(&r)
	case p < 32:
		r.Op, r.Version = jute.OpDelete, g.version()
	case p < 40:
		r.Op, r.Version, r.Data = jute.OpSetData, g.version(), g.data()
	case p < 46:
		r.Op, r.Watch = jute.OpExists, g.IntN(2) == 0
	case p < 52:
		r.Op, r.Watch = jute.OpGetData, g.IntN(2) == 0
	case p < 57:
		r.Op, r.Watch = pick(g, jute.OpGetChildren, jute.OpGetChildren2), g.IntN(2) == 0
	case p < 60:
		r.Op, r.ACL, r.Version = jute.OpSetACL, g.acl(), g.version()
	case p < 63:
		r.Op = jute.OpGetACL
	case p < 70:
		r.Op, r.Flags = jute.OpAddWatch, int32(g.IntN(2))
		if g.IntN(20) == 0 {
			r.Flags = 2
		}
	case p < 74:
		r.Op, r.Flags = pick(g, jute.OpCheckWatches, jute.OpRemoveWatches, jute.OpRemoveWatches), int32(1+g.IntN(3))
		if g.IntN(20) == 0 {
			r.Flags = pick[int32](g, 0, 4, 5, -1)
		}
	case p < 84:
		r = jute.Request{Op: jute.OpMulti}
		for range g.IntN(6) {
			r.Ops = append(r.Ops, g.write())
		}
	case p < 87:
		r = jute.Request{Op: jute.OpMultiRead}
		for range g.IntN(5) {
			r.Ops = append(r.Ops,
				jute.Request{Op: pick(g, jute.OpGetData, jute.OpGetChildren), Path: g.path(), Watch: g.IntN(2) == 0})
		}
	case p < 90:
		r.Op = jute.OpSync
	case p < 92:
		r.Op = jute.OpGetEphemerals
	case p < 94:
		r.Op = jute.OpGetAllChildrenNumber
	case p < 96:
		r = jute.Request{Op: jute.OpWhoAmI}
	case p < 97:
		r = jute.Request{Op: jute.OpReconfig, Reconfig: &jute.Reconfig{ConfigID: -1}}
	default:
		r = jute.Request{Op: jute.OpPing}
	}
	return r
}

// write makes an operation of a multi.
func (g generator) write() jute.Request {
	r := jute.Request{Path: g.path()}
	switch g.IntN(4) {
	case 0:
		r.Op, r.Version = jute.OpDelete, g.version()
	case 1:
		r.Op, r.Version, r.Data = jute.OpSetData, g.version(), g.data()
	case 2:
		r.Op, r.Version = jute.OpCheck, g.version()
	default:
		g.create(&r)
	}
	return r
}

// hour is a time to live that outlasts every test.
const hour = 3_600_000

func (g generator) create(r *jute.Request) {
	r.Data, r.ACL = g.data(), g.acl()
	if g.IntN(8) > 0 {
		r.ACL = zk.WorldACL(zk.PermAll)
	}
	r.Op = pick(g, jute.OpCreate, jute.OpCreate2, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL)
	r.Flags = pick[int32](g, 0, 0, 0, 1, 1, 2, 3)
	switch r.Op {
	case jute.OpCreateContainer:
		r.Flags = 4
	case jute.OpCreateTTL:
		r.Flags, r.TTL = pick[int32](g, 5, 6), hour
	}
	if g.IntN(25) == 0 {
		r.Flags = pick[int32](g, 0, 1, 2, 3, 4, 5, 6, 9, -1)
	}
}

const (
	schemeWorld  = "world"
	schemeDigest = "digest"
)

func (g generator) acl() []zk.ACL {
	switch g.IntN(9) {
	case 0:
		return zk.WorldACL(zk.PermRead)
	case 1:
		return zk.WorldACL(zk.PermAll &^ zk.PermRead)
	case 2:
		return zk.DigestACL(zk.PermAll, "u1", "p1")
	case 3:
		return zk.AuthACL(zk.PermAll)
	case 4:
		return []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: pick(g, "127.0.0.1", "127.0.0.0/8", "10.0.0.1", "nonsense")}}
	case 5:
		return pick(g, nil, []zk.ACL{{}}, []zk.ACL{{Perms: zk.PermAll, Scheme: schemeWorld, ID: "someone"}})
	case 6:
		return append(zk.WorldACL(zk.PermRead), zk.DigestACL(zk.PermAll, "u2", "p2")...)
	}
	return zk.WorldACL(zk.PermAll)
}

func (g generator) data() []byte {
	return pick(g, nil, []byte{}, []byte("x"), []byte("data"))
}

func (g generator) version() int32 { return pick[int32](g, -1, -1, -1, 0, 0, 1, 2, 7) }

// path makes a path below the root of the sequence; few names make it likely that the node is there.
func (g generator) path() string {
	if g.IntN(60) == 0 {
		return pick(g, "/a/", "//b", "/a/./b", "/..", "/a\x00", "/a\x01b", "/é", "/a/b/c/d/e")
	}
	var b strings.Builder
	for range g.IntN(4) {
		b.WriteByte('/')
		b.WriteByte(byte('a' + g.IntN(3)))
	}
	if g.IntN(30) == 0 {
		fmt.Fprintf(&b, "/a%010d", g.IntN(6))
	}
	return b.String()
}

func (g generator) watches() jute.SetWatches {
	w := jute.SetWatches{RelativeZxid: int64(g.IntN(12))}
	for _, list := range []*[]string{&w.Data, &w.Exist, &w.Child, &w.Persistent, &w.Recursive} {
		for range g.IntN(3) {
			*list = append(*list, g.path())
		}
	}
	return w
}

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

// String is how a step is shown.
func (s step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d: ", s.client)
	switch s.action {
	case doAuth:
		fmt.Fprintf(&b, "auth %s", s.auth.Auth)
	case doSetWatches:
		fmt.Fprintf(&b, "%v %+v", s.op, s.watches)
	case doReconnect:
		fmt.Fprintf(&b, "reconnect with watches %+v", s.watches)
	case doNewSession:
		b.WriteString("new session")
	case doOffend:
		fmt.Fprintf(&b, "offend with %v", s.op)
	default:
		for i := range s.requests {
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(show(&s.requests[i]))
		}
	}
	return b.String()
}

func show(r *jute.Request) string {
	if r.Op == jute.OpMulti || r.Op == jute.OpMultiRead {
		parts := make([]string, len(r.Ops))
		for i := range r.Ops {
			parts[i] = show(&r.Ops[i])
		}
		return fmt.Sprintf("%v[%s]", r.Op, strings.Join(parts, "; "))
	}
	return fmt.Sprintf("%v %q flags %d version %d watch %t data %q acl %v", r.Op, r.Path, r.Flags, r.Version, r.Watch,
		r.Data, r.ACL)
}
