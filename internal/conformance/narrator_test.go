package conformance_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// narrator puts answers into words that do not depend on the server: times are left out, zxids count from a beginning,
// sessions are numbered, paths are those below a root.
type narrator struct {
	root     string
	base     int64 // the zxid of the beginning
	sessions map[int64]int
}

// sent is a request without an answer.
type sent struct {
	op  jute.Op
	xid int32
}

// event puts an event into words.
func (n *narrator) event(a answer) string {
	e, err := jute.DecodeWatcherEvent(a.body)
	if err != nil {
		return fmt.Sprintf("event %x: %v", a.body, err)
	}
	return fmt.Sprintf("event %s %q state %d zxid %d %v",
		strings.TrimPrefix(e.Type.String(), "EventNode"), n.path(e.Path), e.State, n.zxid(a.Zxid), a.Code)
}

// reply puts a reply into words.
func (n *narrator) reply(w sent, a answer) string {
	head := fmt.Sprintf("%v zxid %d %v", w.op, n.zxid(a.Zxid), a.Code)
	if a.Xid != w.xid {
		head += fmt.Sprintf(" xid %d, not %d", a.Xid, w.xid)
	}
	if a.Code != jute.CodeOK {
		if len(a.body) > 0 {
			head += fmt.Sprintf(" body %x", a.body)
		}
		return head
	}
	var r jute.Reply
	if err := jute.DecodeReply(w.op, a.body, &r); err != nil {
		return fmt.Sprintf("%s body %x: %v", head, a.body, err)
	}
	if again := jute.AppendReply(nil, w.op, &r); len(again) != len(a.body) {
		head += fmt.Sprintf(" body of %d bytes", len(a.body))
	}
	if said := n.result(w.op, &r); said != "" {
		head += " " + said
	}
	return head
}

// result describes the result of an operation.
func (n *narrator) result(op jute.Op, r *jute.Reply) string {
	switch op {
	case jute.OpCreate, jute.OpSync:
		return fmt.Sprintf("%q", n.path(r.Path))
	case jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		return fmt.Sprintf("%q %s", n.path(r.Path), n.stat(r.Stat))
	case jute.OpExists, jute.OpSetData, jute.OpSetACL:
		return n.stat(r.Stat)
	case jute.OpGetData:
		return bytesOf(r.Data) + " " + n.stat(r.Stat)
	case jute.OpGetChildren, jute.OpGetEphemerals:
		return fmt.Sprint(n.names(r.Children))
	case jute.OpGetChildren2:
		return fmt.Sprint(n.names(r.Children), " ", n.stat(r.Stat))
	case jute.OpGetACL:
		return fmt.Sprint(identities(r.ACL), " ", n.stat(r.Stat))
	case jute.OpWhoAmI:
		return fmt.Sprint(identities(r.ACL))
	case jute.OpGetAllChildrenNumber:
		return fmt.Sprint(r.Count)
	case jute.OpMulti, jute.OpMultiRead:
		return n.results(r.Results)
	case jute.OpSASL:
		return bytesOf(r.Data)
	}
	return ""
}

func (n *narrator) results(results []jute.Result) string {
	said := make([]string, len(results))
	for i := range results {
		r := &results[i]
		said[i] = strings.TrimSpace(r.Op.String() + " " +
			n.result(r.Op, &jute.Reply{Path: r.Path, Data: r.Data, Stat: r.Stat, Children: r.Children}))
		if r.Op == jute.OpError {
			said[i] = r.Code.String()
		}
	}
	return "{" + strings.Join(said, "; ") + "}"
}

// bytesOf distinguishes nil from empty.
func bytesOf(b []byte) string {
	if b == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", b)
}

// identities are in the order of a hash table, those of an ACL where "auth" was: here they are sorted.
func identities(ids []zk.ACL) []zk.ACL {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b zk.ACL) int { return strings.Compare(a.Scheme+a.ID, b.Scheme+b.ID) })
	return ids
}

// zxid counts from the start of the sequence. An older zxid, or none, stays.
func (n *narrator) zxid(z int64) int64 {
	if z < n.base {
		return z
	}
	return z - n.base
}

func (n *narrator) path(path string) string {
	if below, ok := strings.CutPrefix(path, quotaRoot+n.root); ok && n.root != "" {
		return quotaRoot + below
	}
	return strings.TrimPrefix(path, n.root)
}

// quotaRoot is the node of the quota of the root.
const quotaRoot = "/zookeeper/quota"

// names are those of children, or paths, whose order is that of a hash table: here they are sorted.
func (n *narrator) names(names []string) []string {
	said := make([]string, len(names))
	for i, name := range names {
		said[i] = n.path(name)
	}
	slices.Sort(said)
	return said
}

func (n *narrator) stat(s zk.Stat) string {
	owner := ""
	if s.EphemeralOwner != 0 {
		owner = fmt.Sprintf(" owner %d", n.sessions[s.EphemeralOwner])
	}
	return fmt.Sprintf("[c %d m %d p %d v %d cv %d av %d%s len %d children %d]", n.zxid(s.Czxid), n.zxid(s.Mzxid),
		n.zxid(s.Pzxid), s.Version, s.Cversion, s.Aversion, owner, s.DataLength, s.NumChildren)
}
