package curatortest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// Action is the fault that a request or its reply suffers.
type Action int

// The actions of a [Rule]. Those that end a connection close both sides of it.
const (
	// CutBefore ends the connection instead of forwarding the request. Earlier requests were forwarded; replies that are
	// still on their way are lost.
	CutBefore Action = iota + 1
	// CutAfter forwards the request and nothing behind it, and waits for the server's reply: the server has executed the
	// request. Earlier replies are delivered. The reply itself is not, and the connection ends.
	CutAfter
	// HoldRequest keeps the request, and everything the client sends behind it, until [Injection.Release].
	HoldRequest
	// HoldReply keeps the reply, and everything the server sends behind it, until [Injection.Release].
	HoldReply
	// DelayRequest is HoldRequest for the time of Rule.Delay. Matches wait one after the other: the delays of requests
	// that are sent at once add up.
	DelayRequest
	// DelayReply is HoldReply for the time of Rule.Delay. Matches wait one after the other.
	DelayReply
	// TruncateReply is CutAfter that also delivers the first half of the reply's frame.
	TruncateReply
	// DropReply swallows the reply; the connection continues without it.
	DropReply
	// ReplyError keeps the request from the server. The reply, in its place, has the code of Rule.Err and nothing else. No
	// watch is set. A multi gets the same reply, although its own errors have one code for each operation. It is not valid
	// for a handshake or a watch event.
	ReplyError
	// DuplicateReply delivers a watch event twice. It is not valid for a reply, whose xid may come only once.
	DuplicateReply
	// ReplyErrorThenCut is ReplyError that ends the connection behind its reply, as a server does with an operation that
	// it does not know.
	ReplyErrorThenCut
)

var actionNames = [...]string{
	CutBefore:         "CutBefore",
	CutAfter:          "CutAfter",
	HoldRequest:       "HoldRequest",
	HoldReply:         "HoldReply",
	DelayRequest:      "DelayRequest",
	DelayReply:        "DelayReply",
	TruncateReply:     "TruncateReply",
	DropReply:         "DropReply",
	ReplyError:        "ReplyError",
	DuplicateReply:    "DuplicateReply",
	ReplyErrorThenCut: "ReplyErrorThenCut",
}

func (a Action) valid() bool { return a >= CutBefore && int(a) < len(actionNames) }

// refuses reports whether the reply is an error in place of the server's.
func (a Action) refuses() bool { return a == ReplyError || a == ReplyErrorThenCut }

// onRequest reports whether the action ends before the request is forwarded.
func (a Action) onRequest() bool {
	switch a {
	case CutBefore, HoldRequest, DelayRequest, ReplyError, ReplyErrorThenCut:
		return true
	default:
		return false
	}
}

// String returns the name of the constant.
func (a Action) String() string {
	if a.valid() {
		return actionNames[a]
	}
	return "Action(" + strconv.Itoa(int(a)) + ")"
}

// The names of frames that are no requests of the protocol.
const (
	opConnect      = "connect"
	opNotification = "notification"
	opHeartbeat    = "heartbeat" // a transaction without an operation, which proves that there is a quorum
	opNone         = ""          // an unreadable frame
)

var (
	opPing     = jute.OpPing.String()
	knownNames = requestNames()
)

func requestNames() map[string]bool {
	names := map[string]bool{opConnect: true, opNotification: true, opHeartbeat: true}
	for op := jute.OpCloseSession; op <= jute.OpWhoAmI; op++ {
		if name := op.String(); op != jute.OpError && !strings.HasPrefix(name, "op(") {
			names[name] = true
		}
	}
	return names
}

// Rule selects requests and defines an action for them. The zero value of a field but Action selects all.
//
// Some faults, and the rules for them:
//
//	the request is lost                     Action: CutBefore
//	it is done, and the answer is lost      Action: CutAfter
//	half of the answer comes                Action: TruncateReply
//	the server is slow                      Action: DelayReply, Delay: d
//	the server refuses the request          Action: ReplyError, Err: zk.ErrNoAuth
//	it does not know the request            Action: ReplyErrorThenCut, Err: framework.ErrUnimplemented
//	n attempts to connect fail              Ops: "connect", Action: CutBefore, Count: n
//	a handshake is never answered           Ops: "connect", Action: DropReply
//	the server dies as a session is made    Ops: "connect", Action: CutAfter
//	a watch event is lost                   Ops: "notification", Action: DropReply
//	a watch event is late                   Ops: "notification", Action: HoldReply
//	a watch event comes twice               Ops: "notification", Action: DuplicateReply
//	one request in a hundred is lost        Action: CutBefore, Chance: 0.01, Seed: s, MayMiss: true
type Rule struct {
	// Ops are the names of operations as in ZooDefs.OpCode of Java: "create2", "delete", "multi". "connect" is the
	// handshake. "notification" is a watch event: it has no request, and an action on its "reply" acts on the event.
	// "heartbeat" is a multi without an operation. Empty selects any request, but no handshake, ping, heartbeat or watch
	// event.
	Ops []string
	// Path is a pattern for the path at the server: with the chroot and, for a sequential node, without the number. Each
	// segment is a pattern of [path.Match]; "**" is any number of segments, at the end at least one. A multi, or a client
	// that sets its watches again, matches by any of its paths.
	Path string
	// SessionID selects a session. A handshake belongs to the session that it requests, or to 0 if that is a new one.
	SessionID int64
	// Connection selects a connection by its number. The first one is 1.
	Connection int64
	// Chance is the probability with which a match counts, up to 1. A match that does not count passes. 0 is always.
	Chance float64
	// Seed seeds the random numbers of Chance: with the same Seed, the same matches of a sequence count. Clients that send
	// at the same time have their own sequences.
	Seed uint64
	// Skip is the number of matches that pass before the first Action.
	Skip int
	// Count is the number of matches that Action is for; later ones pass. 0 is all.
	Count int
	// Action is the action. It has no default.
	Action Action
	// Delay is the time of DelayRequest and DelayReply.
	Delay time.Duration
	// Err is the error of ReplyError and ReplyErrorThenCut: one that stands for a code of the server, such as
	// zk.ErrNoAuth.
	Err error
	// MayMiss is for a rule that need not act, such as one with a small Chance. Any other rule that has not acted is an
	// [ErrNeverHit].
	MayMiss bool
}

// Validate returns an error for each fault of the rule, joined, or nil.
func (r Rule) Validate() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("curatortest: rule: "+format, args...))
	}
	if !r.Action.valid() {
		add("no such action: %d", int(r.Action))
	}
	for _, op := range r.Ops {
		switch {
		case !knownNames[op]:
			add("no such operation: %q", op)
		case op == opNotification && r.Action.onRequest():
			add("%v needs a request, a watch event has none", r.Action)
		case op == opConnect && r.Action.refuses():
			add("the answer to a handshake has no code")
		case op != opNotification && r.Action == DuplicateReply:
			add("%v is for watch events only", r.Action)
		}
	}
	if r.Action == DuplicateReply && len(r.Ops) == 0 {
		add("%v is for watch events only", r.Action)
	}
	if code, ok := jute.CodeOf(r.Err); r.Action.refuses() && (!ok || code == jute.CodeOK) {
		add("%v needs an error that a server has a code for, not %v", r.Action, r.Err)
	}
	if _, err := compileGlob(r.Path); err != nil {
		add("path %q: %w", r.Path, err)
	}
	if r.Skip < 0 || r.Count < 0 || r.Delay < 0 || r.Connection < 0 {
		add("negative number")
	}
	if !(r.Chance >= 0 && r.Chance <= 1) { // NaN is neither
		add("chance of %v", r.Chance)
	}
	return errors.Join(errs...)
}

// wants reports whether the rule matches the frame, apart from its Chance, Skip and Count.
func (r *Rule) wants(g glob, m *message) bool {
	if len(r.Ops) > 0 {
		if !slices.Contains(r.Ops, m.op) {
			return false
		}
	} else if m.op == opConnect || m.op == opNotification || m.op == opPing || m.op == opHeartbeat || m.op == opNone {
		return false
	}
	if r.SessionID != 0 && r.SessionID != m.session {
		return false
	}
	if r.Connection != 0 && r.Connection != m.connection {
		return false
	}
	if r.Path == "" || len(m.paths) == 0 {
		return r.Path == "" || g.match(m.path)
	}
	return slices.ContainsFunc(m.paths, g.match)
}

// counts reports whether Chance lets the match of that number count.
func (r *Rule) counts(number uint64) bool {
	if r.Chance == 0 || r.Chance == 1 {
		return true
	}
	z := r.Seed + number*0x9e3779b97f4a7c15 // SplitMix64
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	const bits = 53 // of a float64
	return float64(z>>(64-bits))/(1<<bits) < r.Chance
}

const anyRest = "**"

var errRelative = errors.New("does not start with a slash")

// glob is a pattern in its segments.
type glob []string

func compileGlob(pattern string) (glob, error) {
	if pattern == "" {
		return nil, nil
	}
	if pattern != anyRest && pattern[0] != '/' {
		return nil, errRelative
	}
	g := glob(strings.Split(strings.TrimPrefix(pattern, "/"), "/"))
	for _, segment := range g {
		if _, err := path.Match(segment, ""); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g glob) match(p string) bool {
	return p != "" && g.matchSegments(strings.TrimPrefix(p, "/"), true)
}

// matchSegments matches the segments of rest. There is one more than rest has slashes, or none if more is false.
func (g glob) matchSegments(rest string, more bool) bool {
	for i, want := range g {
		if want == anyRest {
			tail := g[i+1:]
			if len(tail) == 0 {
				return more
			}
			for more {
				if tail.matchSegments(rest, more) {
					return true
				}
				_, rest, more = strings.Cut(rest, "/")
			}
			return false
		}
		if !more {
			return false
		}
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if ok, _ := path.Match(want, segment); !ok {
			return false
		}
	}
	return !more
}
