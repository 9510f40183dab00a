package zkserver

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// proposal turns the operations of one request into a transaction. It sees the tree with the changes of its earlier
// operations, and changes nothing itself: a refused request has no effect.
type proposal struct {
	tree    *tree
	session int64
	ids     identities
	schemes schemes
	txn     txn
	// enforceQuota refuses what a hard limit of a quota forbids.
	enforceQuota bool

	pending map[string]*plannedNode
}

// plannedNode is a node after a proposal. It is nil for a node that will not exist.
type plannedNode struct {
	acl               []zk.ACL
	data              []byte
	owner             int64
	version, aversion int32
	creates           int32
	children          int
}

// planned returns the node at path as it is after the operations so far, nil if there is none.
func (p *proposal) planned(path string) *plannedNode {
	if o, ok := p.pending[path]; ok {
		return o
	}
	n := p.tree.get(path)
	if n == nil {
		return nil
	}
	return &plannedNode{
		acl:      n.acl,
		data:     n.data,
		owner:    n.owner,
		version:  n.version,
		aversion: n.aversion,
		creates:  n.creates,
		children: len(n.children),
	}
}

// plan records the state of a node after the proposal.
func (p *proposal) plan(path string, o *plannedNode) {
	if p.pending == nil {
		p.pending = map[string]*plannedNode{}
	}
	p.pending[path] = o
}

func (p *proposal) change(c change) { p.txn.changes = append(p.txn.changes, c) }

func (p *proposal) may(o *plannedNode, perms int32) bool { return allowed(o.acl, perms, p.ids) }

// add adds an operation, or returns the code of its refusal. The order of the checks decides which of several codes a
// client gets.
func (p *proposal) add(r *jute.Request) jute.Code {
	switch r.Op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		return p.create(r)
	case jute.OpDelete:
		return p.delete(r)
	case jute.OpSetData:
		return p.setData(r)
	case jute.OpSetACL:
		return p.setACL(r)
	}
	return p.check(r)
}

func (p *proposal) create(r *jute.Request) jute.Code {
	mode, ok := modeOf(r.Flags)
	switch {
	case !ok:
		return jute.CodeBadArguments
	case r.Op == jute.OpCreateTTL && (!mode.ttl || r.TTL <= 0 || r.TTL > maxTTL):
		return jute.CodeBadArguments
	case r.Op != jute.OpCreateTTL && mode.ttl:
		return jute.CodeBadArguments
	}
	parentPath, ok := parentOf(r.Path)
	if !ok {
		return jute.CodeBadArguments
	}
	acl, code := resolveACL(r.ACL, p.ids, p.schemes)
	if code != jute.CodeOK {
		return code
	}
	parent := p.planned(parentPath)
	if parent == nil {
		return jute.CodeNoNode
	}
	if !p.may(parent, zk.PermCreate) {
		return jute.CodeNoAuth
	}
	path := r.Path
	if mode.sequential {
		path += fmt.Sprintf("%010d", parent.creates)
	}
	switch {
	case !validPath(path):
		return jute.CodeBadArguments
	case p.planned(path) != nil:
		return jute.CodeNodeExists
	case isEphemeral(parent.owner):
		return jute.CodeNoChildrenForEphemerals
	}
	if code := p.checkQuota(path, 1, int64(len(r.Data))); code != jute.CodeOK {
		return code
	}
	owner := ownerNone
	switch {
	case r.Op == jute.OpCreateContainer:
		owner = ownerContainer
	case r.Op == jute.OpCreateTTL:
		owner = ownerTTL | r.TTL
	case mode.ephemeral:
		owner = p.session
	}
	after := *parent
	after.creates++
	after.children++
	p.plan(parentPath, &after)
	p.plan(path, &plannedNode{acl: acl, data: r.Data, owner: owner})
	p.change(change{op: r.Op, path: path, data: r.Data, acl: acl, version: after.creates, owner: owner})
	return jute.CodeOK
}

func (p *proposal) delete(r *jute.Request) jute.Code {
	parentPath, ok := parentOf(r.Path)
	if !ok || undeletable(r.Path) {
		return jute.CodeBadArguments
	}
	parent := p.planned(parentPath)
	if parent == nil {
		return jute.CodeNoNode
	}
	if !p.may(parent, zk.PermDelete) {
		return jute.CodeNoAuth
	}
	node := p.planned(r.Path)
	switch {
	case node == nil:
		return jute.CodeNoNode
	case !versionFits(r.Version, node.version):
		return jute.CodeBadVersion
	case node.children > 0:
		return jute.CodeNotEmpty
	}
	after := *parent
	after.children--
	p.plan(parentPath, &after)
	p.plan(r.Path, nil)
	p.change(change{op: jute.OpDelete, path: r.Path})
	return jute.CodeOK
}

func (p *proposal) setData(r *jute.Request) jute.Code {
	node, code := p.target(r, zk.PermWrite)
	if node == nil {
		return code
	}
	after := *node
	after.version++
	after.data = r.Data
	p.plan(r.Path, &after)
	p.change(change{op: jute.OpSetData, path: r.Path, data: r.Data, version: after.version})
	return jute.CodeOK
}

func (p *proposal) setACL(r *jute.Request) jute.Code {
	if !validPath(r.Path) {
		return jute.CodeBadArguments
	}
	acl, code := resolveACL(r.ACL, p.ids, p.schemes)
	if code != jute.CodeOK {
		return code
	}
	node := p.planned(r.Path)
	switch {
	case node == nil:
		return jute.CodeNoNode
	case !p.may(node, zk.PermAdmin):
		return jute.CodeNoAuth
	case !versionFits(r.Version, node.aversion):
		return jute.CodeBadVersion
	}
	p.change(change{op: jute.OpSetACL, path: r.Path, acl: acl, version: node.aversion + 1})
	return jute.CodeOK
}

func (p *proposal) check(r *jute.Request) jute.Code {
	node, code := p.target(r, zk.PermRead)
	if node != nil {
		p.change(change{op: jute.OpCheck, path: r.Path})
	}
	return code
}

// target returns the node of an operation that requires a version of the data.
func (p *proposal) target(r *jute.Request, perms int32) (*plannedNode, jute.Code) {
	if !validPath(r.Path) {
		return nil, jute.CodeBadArguments
	}
	node := p.planned(r.Path)
	switch {
	case node == nil:
		return nil, jute.CodeNoNode
	case !p.may(node, perms):
		return nil, jute.CodeNoAuth
	}
	if r.Op == jute.OpSetData {
		if code := p.checkQuota(r.Path, 0, int64(len(r.Data)-len(node.data))); code != jute.CodeOK {
			return nil, code
		}
	}
	switch {
	case !versionFits(r.Version, node.version):
		return nil, jute.CodeBadVersion
	}
	return node, jute.CodeOK
}

// anyVersion in a request matches every version.
const anyVersion = -1

func versionFits(want, have int32) bool { return want == anyVersion || want == have }
