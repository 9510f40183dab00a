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

// Action is what a [Proxy] does to a request or its reply.
type Action int

// The actions of a [Rule]. Those that end a connection close both sides of it.
const (
	// CutBefore ends the connection in place of forwarding the request. What was sent before it has been
	// forwarded; replies that were still on their way are lost.
	CutBefore Action = iota + 1
	// CutAfter forwards the request, nothing behind it, and waits for the server's reply: the server has done
	// what was asked. The replies before that one are delivered, it is not, and the connection ends.
	CutAfter
	// HoldRequest keeps the request, and everything the client sends behind it, until [Injection.Release].
	HoldRequest
	// HoldReply keeps the reply, and everything the server sends behind it, until [Injection.Release].
	HoldReply
	// DelayRequest is HoldRequest for the time of Rule.Delay. Every match waits in its turn: the delays of
	// requests sent at once add up.
	DelayRequest
	// DelayReply is HoldReply for the time of Rule.Delay. Every match waits in its turn.
	DelayReply
	// TruncateReply is CutAfter that also delivers the first half of the reply's frame.
	TruncateReply
	// DropReply swallows the reply; the connection goes on without it.
	DropReply
)

var actionNames = [...]string{
	CutBefore:     "CutBefore",
	CutAfter:      "CutAfter",
	HoldRequest:   "HoldRequest",
	HoldReply:     "HoldReply",
	DelayRequest:  "DelayRequest",
	DelayReply:    "DelayReply",
	TruncateReply: "TruncateReply",
	DropReply:     "DropReply",
}

func (a Action) valid() bool { return a >= CutBefore && int(a) < len(actionNames) }

// onRequest tells whether the action is over before the request is forwarded.
func (a Action) onRequest() bool { return a == CutBefore || a == HoldRequest || a == DelayRequest }

// String returns the name of the constant.
func (a Action) String() string {
	if a.valid() {
		return actionNames[a]
	}
	return "Action(" + strconv.Itoa(int(a)) + ")"
}

// The names of what is no request of the protocol.
const (
	opConnect      = "connect"
	opNotification = "notification"
)

var (
	opPing     = jute.OpPing.String()
	knownNames = requestNames()
)

func requestNames() map[string]bool {
	names := map[string]bool{opConnect: true, opNotification: true}
	for op := jute.OpCloseSession; op <= jute.OpWhoAmI; op++ {
		if name := op.String(); op != jute.OpError && !strings.HasPrefix(name, "op(") {
			names[name] = true
		}
	}
	return names
}

// Rule selects requests and says what happens to them. The zero value of a field but Action selects all.
type Rule struct {
	// Ops are the names of operations as in ZooDefs.OpCode of Java: "create2", "delete", "multi". "connect" is
	// the handshake, "notification" a watch event, which has no request: an action on its "reply" acts on the
	// event. Empty is any request, which the handshake, pings and watch events are not.
	Ops []string
	// Path is a pattern for the path the server sees, chroot included and, for a sequential node, before the
	// server adds the number. Each segment is one of [path.Match]; "**" is any number of segments, at the end
	// at least one. A multi, or a client that arms its watches again, matches by any of its paths.
	Path string
	// SessionID selects a session. A handshake belongs to the session the client asks for, 0 if a new one.
	SessionID int64
	// Skip is how many matches pass before the first that Action is for.
	Skip int
	// Count is how many matches Action is for; those after them pass. 0 is all.
	Count int
	// Action is what happens. It has no default.
	Action Action
	// Delay is the time of DelayRequest and DelayReply.
	Delay time.Duration
}

// Validate returns what is wrong with the rule, nil if nothing is.
func (r Rule) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("curatortest: rule: "+format, args...))
	}
	if !r.Action.valid() {
		bad("no such action: %d", int(r.Action))
	}
	for _, op := range r.Ops {
		if !knownNames[op] {
			bad("no such operation: %q", op)
		}
		if op == opNotification && r.Action.onRequest() {
			bad("%v needs a request, a watch event has none", r.Action)
		}
	}
	if _, err := compileGlob(r.Path); err != nil {
		bad("path %q: %w", r.Path, err)
	}
	if r.Skip < 0 || r.Count < 0 || r.Delay < 0 {
		bad("negative number")
	}
	return errors.Join(errs...)
}

// wants tells whether the rule is about the frame, Skip and Count aside.
func (r *Rule) wants(g glob, m *message) bool {
	if len(r.Ops) > 0 {
		if !slices.Contains(r.Ops, m.op) {
			return false
		}
	} else if m.op == opConnect || m.op == opNotification || m.op == opPing {
		return false
	}
	if r.SessionID != 0 && r.SessionID != m.session {
		return false
	}
	return r.Path == "" || slices.ContainsFunc(m.paths, g.match)
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
	return p != "" && g.matchSegments(strings.Split(strings.TrimPrefix(p, "/"), "/"))
}

func (g glob) matchSegments(segments []string) bool {
	for i, want := range g {
		if want == anyRest {
			rest := g[i+1:]
			if len(rest) == 0 {
				return len(segments) > 0
			}
			for n := range segments {
				if rest.matchSegments(segments[n:]) {
					return true
				}
			}
			return false
		}
		if len(segments) == 0 {
			return false
		}
		if ok, _ := path.Match(want, segments[0]); !ok {
			return false
		}
		segments = segments[1:]
	}
	return len(segments) == 0
}
