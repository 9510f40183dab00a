package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/desired"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// EventType is the kind of an [Event].
type EventType int

// The types of events.
const (
	// Created means that the node is there: it was created, for the first time or again, or it was there already and is
	// ours. In Java: nodeCreated.
	Created EventType = iota + 1
	// Lost means that the node is not there any more. Err has the reason: [ErrDeleted], framework.ErrSessionLost,
	// [ErrForeign] if another client has put its own in the place, or what the servers refuse. It is created again as
	// soon as possible, unless it ends: see [WithEndWhenDeleted].
	Lost
	// Refused means that the node cannot be there for now: the servers refuse it, or it belongs to somebody else. It is
	// tried again after growing pauses, from a second to a minute, and each different reason has one event.
	Refused
)

// String returns the name of the constant.
func (t EventType) String() string {
	switch t {
	case Created:
		return "Created"
	case Lost:
		return "Lost"
	case Refused:
		return "Refused"
	}
	return "unknown"
}

// Event is a change of a [PersistentNode].
type Event struct {
	Type EventType
	Path string // of the node, with the name that it has
	Err  error  // the reason of Lost and Refused
}

// PersistentNode keeps a node in ZooKeeper from Start to Close, whatever happens to the connection, to the session and
// to the node itself. All methods are safe for concurrent use. In Java: PersistentNode.
//
// An ephemeral node is there as a node of the current session. A node of an earlier session of this client is replaced,
// and one of anybody else is left alone: see [ErrForeign]. A node of another mode has no owner: one that exists is
// adopted, and Close deletes it.
//
// The data is the desired one: what others write is overwritten.
type PersistentNode struct {
	client   *framework.Client
	recipe   string
	spec     desired.Spec
	also     []desired.Spec // nodes that are kept beside it
	err      error          // returned by Start if not nil
	settings settings

	listeners     listeners.Set[Event]
	notifications waitqueue.Serial // calls of the listeners
	listening     context.Context  // of the listeners; ends with Close
	stopListening context.CancelCauseFunc

	done chan struct{} // closed by Close, or when the node has ended
	end  func()        // closes done

	mu     sync.Mutex
	data   []byte
	node   *desired.Node   // nil before Start
	others []*desired.Node // those of also
	closed bool
}

// NewPersistentNode returns a node. It does no I/O. Start returns an error if the path is invalid or the mode has a
// TTL: see [NewPersistentTTLNode]. data nil is an empty node. In Java: the constructors of PersistentNode, with
// [WithProtection] for useProtection.
func NewPersistentNode(
	client *framework.Client, path string, mode builders.CreateMode, data []byte, opts ...NodeOption,
) *PersistentNode {
	return newPersistentNode(client, "persistent_node", path, mode, data, settingsOf(opts, NodeOption.applyNode))
}

func newPersistentNode(
	client *framework.Client, recipe, path string, mode builders.CreateMode, data []byte, s settings,
) *PersistentNode {
	n := &PersistentNode{
		client: client, recipe: recipe, settings: s, data: append([]byte{}, data...), done: make(chan struct{}),
	}
	n.end = sync.OnceFunc(func() { close(n.done) })
	n.err = zkpath.Validate(path, mode.IsSequential())
	if n.err == nil && mode.HasTTL() {
		n.err = fmt.Errorf("%w: mode %v: a node with a TTL is a PersistentTTLNode", framework.ErrBadArguments, mode)
	}
	n.spec = desired.Spec{
		Client: client, Path: path, Mode: mode, ACL: s.acl, WithoutParents: s.withoutParents, Recipe: recipe, Name: s.name,
		EndWhenDeleted: s.endWhenDeleted,
	}
	if s.protected {
		n.spec.ProtectionID = zkpath.NewProtectionID()
	}
	root := context.Background() //nolint:forbidigo // Close cancels it
	n.listening, n.stopListening = context.WithCancelCause(root)
	return n
}

// AddListener adds a listener; remove removes it. The listeners are called one at a time and in order, on a goroutine
// of the node. Their context ends with Close. In Java: getListenable.
func (n *PersistentNode) AddListener(fn callbacks.Listener[Event]) (remove func()) {
	return n.listeners.Add(fn)
}

// Start begins to keep the node and does not wait: see [PersistentNode.WaitForInitialCreate]. It fails with
// [ErrStarted] the second time, with [ErrClosed] after Close, and with [ErrInUse] if this client keeps a node with this
// path already. In Java: start.
func (n *PersistentNode) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.err != nil:
		return errtext.Wrap(n.err, "nodes", "start")
	case n.closed:
		return ErrClosed
	case n.node != nil:
		return ErrStarted
	}
	spec := n.spec
	spec.Data = n.data
	all, err := desired.Of(n.client).AddAll(append([]desired.Spec{spec}, n.also...), n.notify)
	if err != nil {
		return errtext.Wrap(err, "nodes", "start")
	}
	n.node, n.others = all[0], all[1:]
	return nil
}

// notify passes an event to the listeners, and does not wait for them.
func (n *PersistentNode) notify(i int, ev desired.Event) {
	if i > 0 && ev.Type != desired.Refused { // the child of a node with a TTL
		return
	}
	if n.spec.EndWhenDeleted && errors.Is(ev.Err, ErrDeleted) {
		n.end()
	}
	out := Event{Type: EventType(ev.Type), Path: ev.Path}
	if ev.Err != nil {
		out.Err = errtext.Wrap(ev.Err, "nodes", "%s", ev.Path)
	}
	if n.listeners.Len() == 0 && out.Type != Refused {
		return
	}
	n.notifications.Do(func() {
		if n.listening.Err() != nil {
			return
		}
		call := waitqueue.Guard(context.WithoutCancel(n.listening), n.client, n.recipe)
		if out.Type == Refused && n.listeners.Len() == 0 {
			n.client.ReportUnhandled(context.WithoutCancel(n.listening), n.recipe, out.Err)
			return
		}
		n.listeners.Notify(n.listening, out, func(fn func()) {
			if n.listening.Err() == nil { // the listener before it may have outlasted Close
				call(fn)
			}
		})
	})
}

// WaitForInitialCreate waits until the node is there for the first time. If ctx ends first, the error is that of ctx,
// joined with the reason for which the node is refused, if there is one. If the node has ended since, it is
// [ErrDeleted]: see [WithEndWhenDeleted]. In Java: waitForInitialCreate.
func (n *PersistentNode) WaitForInitialCreate(ctx context.Context) error {
	node, err := n.running()
	if err != nil {
		return err
	}
	for _, one := range append([]*desired.Node{node}, n.others...) {
		if err := one.AwaitCreated(ctx); err != nil {
			return n.wrap(one, err, "wait for initial create")
		}
	}
	return nil
}

// SetData changes the data and waits until the node has it. If it fails, because ctx ends or because the node is
// refused, the node still gets the data as soon as possible. nil is the empty node. Before Start it only sets the data.
// In Java: setData.
func (n *PersistentNode) SetData(ctx context.Context, data []byte) error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return ErrClosed
	}
	n.data = append([]byte{}, data...)
	node := n.node
	if node == nil {
		n.mu.Unlock()
		return nil
	}
	change := node.Set(n.data)
	n.mu.Unlock()
	return n.wrap(node, node.AwaitWritten(ctx, change), "set data")
}

// Data returns the desired data. In Java: getData.
func (n *PersistentNode) Data() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.data)
}

// ActualPath returns the path of the node, with its protection and its number, as soon as that is known; before, and
// before Start, it returns "". A node that is created again keeps its name. In Java: getActualPath.
func (n *PersistentNode) ActualPath() string {
	if node, _ := n.running(); node != nil {
		return node.State().Path
	}
	return ""
}

// Done returns a channel that is closed when the node is not kept any more: by Close, or because it was deleted and has
// the option [WithEndWhenDeleted]. In the second case Err is [ErrDeleted], also after Close. Not in Java.
func (n *PersistentNode) Done() <-chan struct{} { return n.done }

// Err returns why the servers refuse the node for now, or nil. A lost connection is not reported. It returns
// [ErrDeleted] if the node has ended before Close: see [WithEndWhenDeleted]. Otherwise it is nil after Close.
func (n *PersistentNode) Err() error {
	n.mu.Lock()
	node, closed := n.node, n.closed
	n.mu.Unlock()
	if node == nil {
		return nil
	}
	for _, one := range append([]*desired.Node{node}, n.others...) {
		if err := one.State().Err; err != nil && (!closed || errors.Is(err, ErrDeleted)) {
			return n.wrap(one, err, "")
		}
	}
	return nil
}

// Close ends the node and waits until it is deleted, if it is ours. ctx bounds the wait alone: the deletion goes on in
// the background until it succeeds or the session of the node has ended. No call of a listener begins after Close
// returns; the context of one that is under way ends. A second Close waits again. In Java: close.
func (n *PersistentNode) Close(ctx context.Context) error {
	n.mu.Lock()
	n.closed = true
	node := n.node
	n.mu.Unlock()
	n.stopListening(ErrClosed)
	n.end()
	if node == nil {
		return nil
	}
	for _, other := range n.others {
		if err := other.Remove(ctx); err != nil {
			return n.wrap(other, err, "close")
		}
	}
	err := node.Remove(ctx)
	if errors.Is(err, ErrDeleted) { // nothing is left to delete
		return nil
	}
	return n.wrap(node, err, "close")
}

// running returns the node between Start and Close.
func (n *PersistentNode) running() (*desired.Node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, ErrClosed
	case n.node == nil:
		return nil, ErrNotStarted
	}
	return n.node, nil
}

// wrap returns the error of one of the nodes with its path.
func (n *PersistentNode) wrap(of *desired.Node, err error, what string) error {
	path := of.State().Path
	if path == "" { // the server has still to choose the name
		path = n.spec.Path
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrClosed):
		return ErrClosed
	case what == "":
		return errtext.Wrap(err, "nodes", "%s", path)
	}
	return errtext.Wrap(err, "nodes", "%s %s", what, path)
}
