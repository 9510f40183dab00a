package desired

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

var (
	// ErrForeign is wrapped by the error of a node that belongs to somebody else.
	ErrForeign = errtext.Special(zk.ErrNodeExists, "curator: the node belongs to somebody else")
	// ErrDeleted is the reason of a node that was deleted in a session that lives, by whomever but [Node.Remove].
	ErrDeleted = errtext.Special(zk.ErrNoNode, "curator: the node was deleted")
	// ErrInUse is returned by Add if the client keeps a node with this path already.
	ErrInUse = errors.New("curator: this client keeps a node with this path already")
)

// Spec describes a desired node. It must not change.
type Spec struct {
	// Client has the namespace and the fence of the writes.
	Client *framework.Client
	Path   string
	Mode   builders.CreateMode
	TTL    time.Duration // of a mode with a TTL
	Data   []byte        // nil is the empty node
	ACL    []zk.ACL      // empty: that of the client
	// ProtectionID puts Java's protection prefix before the name of the node, if it is not "".
	ProtectionID string
	// WithoutParents leaves missing parents missing.
	WithoutParents bool
	// Keep leaves the node in ZooKeeper when it is removed from the desired ones.
	Keep bool
	// EndWhenDeleted ends the node when it is deleted, by whomever but [Node.Remove].
	EndWhenDeleted bool
	// Touch writes the data again after this time, if it is above 0.
	Touch time.Duration
	// Name and Recipe are for telemetry.
	Recipe, Name string
}

// Reconciler keeps the desired nodes of a client. Use [Of]. Its goroutine lives while it has at least one node.
type Reconciler struct {
	client *framework.Client // of the whole tree, a view for the library
	ctx    context.Context   // of the requests; ends with the client
	cancel context.CancelFunc
	wake   chan struct{} // receives one element after something has changed
	born   time.Time     // from which on the ends of pauses are counted

	mu       sync.Mutex
	closed   bool
	done     chan struct{} // closed when the last goroutine has ended
	running  bool
	nodes    map[*Node]struct{}
	byPath   map[string]*Node // without those whose name the server has still to choose
	parents  map[string]*parent
	sessions map[int64]bool // that the client had while it kept nodes
	connection
	queue
}

// Of returns the reconciler of a client, which its views share.
func Of(client *framework.Client) *Reconciler {
	r, _ := hook.Attached(client, func() (any, func() <-chan struct{}) {
		r := newReconciler(client)
		return r, r.close
	}).(*Reconciler)
	return r
}

func newReconciler(client *framework.Client) *Reconciler {
	r := &Reconciler{
		client: waitqueue.ForLibrary(client).UsingNamespace(""), wake: make(chan struct{}, 1), born: time.Now(),
		nodes: make(map[*Node]struct{}), byPath: make(map[string]*Node), parents: make(map[string]*parent),
		sessions: make(map[int64]bool),
	}
	root := context.Background() //nolint:forbidigo // close cancels it
	r.ctx, r.cancel = context.WithCancel(hook.Telemetry(client).WithoutSpans(root))
	r.watcher, r.shared = r.newWatcher(), r.newWatcher()
	return r
}

// Add makes a node desired and does not wait. onEvent is called for each event of the node, in order. It must not block
// and must not call the reconciler.
func (r *Reconciler) Add(spec Spec, onEvent func(Event)) (*Node, error) {
	nodes, err := r.AddAll([]Spec{spec}, func(_ int, ev Event) { onEvent(ev) })
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

// AddAll is [Reconciler.Add] for several nodes, which are created together: with one transaction, if there are few. It
// adds all or none. onEvent also gets the index of the node.
func (r *Reconciler) AddAll(specs []Spec, onEvent func(i int, ev Event)) ([]*Node, error) {
	nodes := make([]*Node, len(specs))
	for i, spec := range specs {
		if err := validate(spec); err != nil {
			return nil, err
		}
		nodes[i] = newNode(r, spec, func(ev Event) { onEvent(i, ev) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, framework.ErrClosed
	}
	for _, n := range nodes {
		if other := r.byPath[n.path]; n.named && other != nil && !other.removing {
			return nil, fmt.Errorf("%w: %s", ErrInUse, n.path)
		}
	}
	for _, n := range nodes {
		r.add(n)
	}
	r.start()
	return nodes, nil
}

// add adds a node. The caller holds mu.
func (r *Reconciler) add(n *Node) {
	r.nodes[n] = struct{}{}
	n.parent = r.parentOf(n.path)
	n.parent.nodes[n] = struct{}{}
	r.wantWatch(n.parent)
	if n.named {
		if other := r.byPath[n.path]; other != nil { // what it has created, and is about to delete, is for the new one
			n.claimed = other.claimed
			n.inherits = other.inherits || other.claimed && other.spec.Mode.IsEphemeral() != n.spec.Mode.IsEphemeral()
			r.forget(other, nil)
		}
		r.byPath[n.path] = n
	}
	n.obs.Desired(r.ctx, 1)
	n.obs.Missing(r.ctx, 1)
	r.want(n, look)
}

func validate(spec Spec) error {
	if err := zkpath.Validate(spec.Path, spec.Mode.IsSequential()); err != nil {
		return err
	}
	if spec.Path == "/" && !spec.Mode.IsSequential() {
		return fmt.Errorf("%w: the root", zk.ErrInvalidPath)
	}
	if spec.Mode.HasTTL() != (spec.TTL > 0) {
		return fmt.Errorf("%w: mode %v with TTL %v", framework.ErrBadArguments, spec.Mode, spec.TTL)
	}
	return nil
}

// locked runs fn with mu held, and then has the goroutine look at what has changed.
func (r *Reconciler) locked(fn func()) {
	r.mu.Lock()
	if !r.closed {
		fn()
	}
	r.mu.Unlock()
	r.poke()
}

func (r *Reconciler) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// start starts the goroutine, unless it runs. The caller holds mu.
func (r *Reconciler) start() {
	if r.running {
		r.poke()
		return
	}
	r.running = true
	r.slowLook = time.Now().Add(slowLook)
	before := r.done
	r.done = make(chan struct{})
	go r.run(before, r.done)
}

// run sends what has to be sent, until there is no desired node.
func (r *Reconciler) run(before, done chan struct{}) {
	defer close(done)
	if before != nil {
		<-before
	}
	remove := r.client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
		r.locked(func() { r.stateChanged(state) })
	})
	defer remove()
	timer := time.NewTimer(0) // connects
	defer timer.Stop()
	for {
		select {
		case <-r.wake:
		case <-timer.C:
		case <-r.ctx.Done():
		}
		r.mu.Lock()
		if r.closed || len(r.nodes) == 0 {
			r.running, r.flight, r.due, r.paused = false, nil, time.Time{}, false
			r.toRead, r.toWrite, r.held, r.toWatch, r.later = nil, nil, nil, nil, nil
			r.mu.Unlock()
			return
		}
		r.connect()
		r.wakeAt(r.slowLook)
		sends := r.plan(time.Now())
		if !r.due.IsZero() {
			timer.Reset(time.Until(r.due))
		}
		r.mu.Unlock()
		for _, send := range sends { // providers of the program are called here
			send()
		}
	}
}

// close ends the goroutine. The nodes of the session end with it.
func (r *Reconciler) close() (done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.cancel()
	for n := range r.nodes {
		n.close()
	}
	if r.done == nil {
		r.done = make(chan struct{})
		close(r.done)
	}
	return r.done
}
