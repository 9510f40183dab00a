package nodes

import (
	"bytes"
	"context"
	"iter"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/zkpath"
)

// GroupMember is a member of a group from Start to Close, and knows the other members. A member is an ephemeral node
// below the path of the group; its name is the id of the member, and its data the payload. All methods are safe for
// concurrent use. In Java: GroupMember.
type GroupMember struct {
	node  *PersistentNode
	cache *cache.CuratorCache
	path  string
	id    string
}

// NewGroupMember returns a member. It does no I/O. Start returns an error if the path is invalid or the id cannot be
// the name of a node. payload nil is an empty one. In Java: the constructors of GroupMember.
func NewGroupMember(
	client *framework.Client, membershipPath, id string, payload []byte, opts ...Option,
) *GroupMember {
	path := zkpath.Join(membershipPath, id)
	s := settingsOf(opts, Option.applyNode)
	m := &GroupMember{
		node: newPersistentNode(client, "group_member", path, builders.Ephemeral, payload, s),
		path: membershipPath, id: id,
		cache: cache.NewCuratorCache(client, membershipPath, cache.WithMaxDepth(1), cache.WithName(s.name)),
	}
	m.node.err = m.validate()
	return m
}

func (m *GroupMember) validate() error {
	if err := zkpath.Validate(m.path, false); err != nil {
		return err
	}
	return validateName("id", m.id)
}

// Start begins to take part and does not wait: see [GroupMember.Ready]. It fails as [PersistentNode.Start] does. In
// Java: start.
func (m *GroupMember) Start() error {
	if err := m.node.Start(); err != nil {
		return err
	}
	return wrapAt(m.cache.Start(), m.path)
}

// Ready waits until this member is in the group and those are known that are in it. If they cannot be read, it returns
// the reason: see [GroupMember.Err]. Not in Java.
func (m *GroupMember) Ready(ctx context.Context) error {
	if err := m.node.WaitForInitialCreate(ctx); err != nil {
		return err
	}
	err := m.cache.Ready(ctx)
	if err == nil {
		err = m.cache.Sync(ctx) // the cache may have been ready before the other ones came
	}
	if err == nil {
		err = m.cache.Err(m.path)
	}
	return wrapAt(err, m.path)
}

// SetThisData changes the payload of this member and waits until the others can see it: see [PersistentNode.SetData].
// In Java: setThisData.
func (m *GroupMember) SetThisData(ctx context.Context, payload []byte) error {
	return m.node.SetData(ctx, payload)
}

// CurrentMembers returns the payloads of the members by their ids. This member is always among them, with its own
// payload, also while its node cannot be there: see [GroupMember.Err]. A member whose node this client may not read is
// not. In Java: getCurrentMembers.
func (m *GroupMember) CurrentMembers() map[string][]byte {
	members := make(map[string][]byte)
	for id, node := range m.cache.Children(m.path) {
		members[id] = bytes.Clone(node.Data)
	}
	members[m.id] = m.node.Data()
	return members
}

// MemberEvent is a change of a group.
type MemberEvent struct {
	ID      string
	Payload []byte // of a member that has joined or changed
	Left    bool   // the member is not there any more
}

// Changes returns an iterator over the members and then over every later change, without a gap. A member that has
// joined, or whose payload has changed, is yielded with its payload. The node of this member is among them as the
// servers have it. The iterator ends when ctx ends or the member is closed, and yields nothing before Start. Events
// wait in memory, without a limit, until the caller takes them. Not in Java.
func (m *GroupMember) Changes(ctx context.Context) iter.Seq[MemberEvent] {
	return func(yield func(MemberEvent) bool) {
		for ev := range m.cache.Changes(ctx) {
			path := ev.Path()
			if ev.Type == cache.Initialized || path == m.path {
				continue
			}
			out := MemberEvent{ID: zkpath.Node(path), Left: ev.Type == cache.NodeDeleted}
			if !out.Left {
				out.Payload = bytes.Clone(ev.New.Data)
			}
			if !yield(out) {
				return
			}
		}
	}
}

// IDFromPath returns the id of the member whose node has this path. In Java: idFromPath.
func (m *GroupMember) IDFromPath(path string) string { return zkpath.Node(path) }

// Err returns why this member cannot be in the group for now, or why it may not know the others, or nil. Both are tried
// again. An outage is no reason.
func (m *GroupMember) Err() error {
	if err := m.node.Err(); err != nil {
		return err
	}
	return wrapAt(m.cache.Err(m.path), m.path)
}

// AddListener adds a listener to the events of the node of this member: see [PersistentNode.AddListener].
func (m *GroupMember) AddListener(fn func(ctx context.Context, ev Event)) (remove func()) {
	return m.node.AddListener(fn)
}

// Close leaves the group: see [PersistentNode.Close]. In Java: close.
func (m *GroupMember) Close(ctx context.Context) error {
	_ = m.cache.Close() // nil
	return m.node.Close(ctx)
}

func wrapAt(err error, path string) error {
	if err == nil {
		return nil
	}
	return errtext.Wrap(err, "nodes", "%s", path)
}
