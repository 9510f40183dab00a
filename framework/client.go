package framework

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/zkpath"
)

// Client is a client of a ZooKeeper ensemble. It keeps a session, retries, and runs operations in the foreground and in
// the background. One Client serves a whole process. All methods are safe for concurrent use. In Java:
// CuratorFramework.
type Client struct {
	core       *core
	operations operations
	view       bool
	library    bool // see hook.ForLibrary
}

// core is shared by a client and its views.
type core struct {
	cfg        *config
	connection *connection
	executor   *exec.Executor
	tracker    *ensembleTracker
	telemetry  *telemetry.Telemetry

	states    *statePublisher
	listeners listeners.Set[callbacks.Event]
	unhandled listeners.Set[UnhandledError]
	watcher   *callbacks.Watcher // hands its events to listeners
	listening context.Context    // context of all listeners; ends when Close stops waiting for them
	unlisten  context.CancelCauseFunc
	closing   context.Context // ends when Close begins, for recipes
	shut      context.CancelCauseFunc

	mu         sync.Mutex
	state      State
	starting   bool
	dispatcher *dispatch.Lanes // runs background callbacks, watchers and listeners
	unobserve  func()          // removes the gauges
	reports    reportQueue     // reports to telemetry without blocking the caller
	attached   attached        // a recipe's

	closeOnce sync.Once
	closeErr  error
}

// UnhandledError is an event of the unhandled-error listeners: the final failure of a background operation, or a panic
// of the user's code.
type UnhandledError struct {
	Message string
	Err     error
}

// New returns a client for a connect string such as "h1:2181,h2:2181/chroot". It does no I/O. With
// "dns-srv://_zookeeper._tcp.example.com/chroot" it finds the servers as [SRVEnsemble] does; ZooKeeper 3.10 has the
// same form. An error about the arguments wraps [ErrBadArguments]. In Java: CuratorFrameworkFactory.
func New(connectString string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(connectString, opts)
	if err != nil {
		return nil, errtext.Wrap(err, "curator", "new client")
	}
	c := &core{cfg: cfg}
	c.listening, c.unlisten = context.WithCancelCause(exec.Root)
	c.closing, c.shut = context.WithCancelCause(exec.Root)
	observed := cfg.observed()
	observed.Post, observed.Panicked = c.reportLater, c.telemetryPanicked
	c.telemetry = telemetry.New(observed)
	c.states = newStatePublisher(c.listening, cfg.breaker, c.stateChanged,
		func(what string, fn func()) { c.guard(exec.Root, what, fn) })
	c.connection = newConnection(cfg, c.states.publish)
	c.executor = exec.New(c.connection.current.Load, cfg.retryPolicy, cfg.connectionTimeout, c.dispatch, c.telemetry)
	c.executor.DeliverLibrary(func(t dispatch.Task) { c.dispatcher.PushLibrary(t) })
	c.executor.Limit(cfg.maxPending)
	c.connection.executor, c.connection.telemetry = c.executor, c.telemetry
	c.connection.unhandled = func(message string, err error) {
		c.dispatch(dispatch.Func(func() { c.reportUnhandled(exec.Root, inBackground, message, err) }))
	}
	c.connection.warn = func(message string, attrs ...slog.Attr) {
		c.states.push(func() { cfg.logger.LogAttrs(exec.Root, slog.LevelWarn, message, attrs...) })
	}
	c.watcher = callbacks.NewWatcher(c.notifyWatched)
	whole := newOperations(c)
	// The tracker has no namespace: with one it would create the namespace before the program uses it.
	forLibrary := whole.ForLibrary().(operations)
	c.tracker = newEnsembleTracker(&Client{core: c, operations: forLibrary, view: true, library: true})
	return &Client{core: c, operations: whole.UsingNamespace(cfg.namespace).(operations)}, nil
}

// Start begins to connect, and does not wait for a connection: operations wait for it, and so does
// [Client.BlockUntilConnected]. A client is started once.
func (c *Client) Start() error {
	if c.view {
		return ErrView
	}
	k := c.core
	k.mu.Lock()
	state, starting := k.state, k.starting
	k.starting = true
	k.mu.Unlock()
	switch {
	case state == Stopped:
		return ErrClosed
	case state == Started || starting:
		return ErrStarted
	}
	err := k.start()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.starting = false
	return err
}

// start starts the client. It calls the ensemble provider, which is code of the program, without a lock.
func (k *core) start() error {
	p := k.cfg.ensemble
	if err := p.Start(); err != nil {
		return errtext.Wrap(err, "curator", "start ensemble provider")
	}
	var target connectString
	var err error
	s := p.ConnectionString()
	if _, notifies := p.(ServerNotifier); !notifies || s != "" {
		if target, err = parseConnectString(s); err != nil {
			err = errtext.Wrap(err, "curator", "start")
		}
	}
	if err == nil && k.cfg.files != nil {
		if _, err = k.cfg.files.current(); err != nil {
			err = errtext.Wrap(err, "curator", "start")
		}
	}
	if err == nil {
		err = k.run(target)
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	if k.cfg.tracker {
		k.tracker.start()
	}
	return nil
}

// run starts everything but the ensemble provider, unless the client was closed meanwhile.
func (k *core) run(target connectString) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == Stopped {
		return ErrClosed
	}
	k.dispatcher = dispatch.StartLanes()
	k.tracker.applies = dispatch.Start()
	k.states.start()
	k.reports.start()
	k.telemetry.Started()
	if err := k.connection.start(target); err != nil {
		k.closeQueues(time.Now().Add(k.cfg.maxCloseWait))
		return errtext.Wrap(err, "curator", "start")
	}
	k.executor.Start()
	k.state = Started
	k.unobserve = k.telemetry.Observe(k.load)
	return nil
}

// Close ends the session, and with it ephemeral nodes, and returns when no goroutine of the client is left. Operations
// in flight end with their answer. All others, and their callbacks, end with [ErrClosed]. Close waits at most the time
// of [WithMaxCloseWait] for the server to close the session, once more for functions of the program that are running,
// and once more for an ensemble provider to close. It returns [ErrCloseTimeout] if they do not end, as when one of them
// calls Close: then their goroutines are left. After the wait for the listeners, their contexts end. A second Close
// waits for the first.
func (c *Client) Close() error {
	if c.view {
		return ErrView
	}
	k := c.core
	k.closeOnce.Do(func() { k.closeErr = k.close() })
	return k.closeErr
}

func (k *core) close() error {
	k.mu.Lock()
	started := k.state == Started
	k.state = Stopped
	k.mu.Unlock()
	k.shut(ErrClosed)
	stopped := k.attached.close(k.cfg.maxCloseWait)
	if !started {
		k.executor.Stop()
		k.unlisten(ErrClosed)
		return nil
	}
	k.unobserve()
	k.dispatch(dispatch.Func(func() { k.notify(exec.Root, callbacks.Event{Type: callbacks.Closing}) }))
	k.tracker.stop()
	k.executor.Stop()
	done := k.connection.close()
	end := time.Now().Add(k.cfg.maxCloseWait)
	done = k.connection.wait(end) && done && stopped
	done = k.executor.Drain(time.Until(end)) && done
	done = k.closeQueues(end) && done
	k.unlisten(ErrClosed)
	closed, err := k.closeProvider()
	var errs []error
	if !done || !closed {
		errs = append(errs, ErrCloseTimeout)
	}
	if err != nil {
		errs = append(errs, errtext.Wrap(err, "curator", "close ensemble provider"))
	}
	return errors.Join(errs...)
}

// closeQueues closes the queues of other goroutines, and reports whether all their tasks have run by end.
func (k *core) closeQueues(end time.Time) bool {
	done := k.dispatcher.Close(time.Until(end))
	done = k.tracker.applies.Close(time.Until(end)) && done
	done = k.states.close(time.Until(end)) && done
	done = k.reports.close(time.Until(end)) && done
	return done
}

// closeProvider closes the ensemble provider, and reports whether its Close has returned within the time for closing.
func (k *core) closeProvider() (bool, error) {
	p := k.cfg.ensemble
	if _, fixed := p.(*FixedEnsembleProvider); fixed {
		return true, p.Close()
	}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = p.Close()
	}()
	if !dispatch.Within(k.cfg.maxCloseWait, done) {
		return false, nil
	}
	return true, err
}

// reportLater queues a report to telemetry.
func (k *core) reportLater(call func()) { k.reports.push(call) }

// telemetryPanicked reports a panic of a provider, a propagator or a driver.
func (k *core) telemetryPanicked(where string, err error) {
	k.reportLater(func() { k.reportUnhandled(exec.Root, inTelemetry, "panic in "+where, err) })
}

// State returns the state of the client's life. In Java: getState.
func (c *Client) State() State {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.state
}

// SessionID returns the id of the current session, 0 before the first.
func (c *Client) SessionID() int64 { return c.core.connection.currentSession().ID() }

// Session returns the newest session of the client, which may have ended; nil before the first. The context of a nil
// Session has ended: a program that needs a session first calls [Client.BlockUntilConnected].
func (c *Client) Session() *Session {
	if before := c.core.cfg.beforeSession; before != nil {
		before(c)
	}
	return c.core.connection.currentSession()
}

// SessionTimeout returns the session timeout that the server has granted; before that, the requested one. In Java:
// getLastNegotiatedSessionTimeoutMs.
func (c *Client) SessionTimeout() time.Duration {
	if conn := c.core.connection.current.Load(); conn != nil {
		return conn.SessionTimeout()
	}
	return c.core.cfg.sessionTimeout
}

// IsConnected reports whether there is a connection now.
func (c *Client) IsConnected() bool {
	ok, _ := c.core.connection.isConnected()
	return ok
}

// BlockUntilConnected returns nil as soon as there is a connection, to a read-only server too. It fails with the error
// of ctx, with [ErrClosed] when the client is closed, and with zk.ErrAuthFailed when the servers refuse its
// credentials or its login. If they may accept the login later, that error matches [ErrConnectionLoss] too. The error
// of ctx is joined with the last error of a connect: syscall.ECONNREFUSED, a *net.DNSError, an error of TLS. In Java:
// blockUntilConnected.
func (c *Client) BlockUntilConnected(ctx context.Context) error { return c.awaitConnection(ctx, false) }

// awaitConnection is BlockUntilConnected. If patient is set it waits until a server accepts the login.
func (c *Client) awaitConnection(ctx context.Context, patient bool) error {
	start := time.Now()
	for {
		connected, changed := c.core.connection.isConnected()
		if connected {
			c.core.telemetry.Connected(time.Since(start))
			return nil
		}
		if err := c.core.executor.Err(); err != nil {
			return err
		}
		switch why, passing := c.core.connection.refusal(); {
		case passing && patient:
		case passing:
			return fmt.Errorf("curator: not connected: %w: %w", ErrConnectionLoss, why)
		case why != nil:
			return why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c.endOf(ctx)
		}
	}
}

// endOf returns the error of ctx, which has ended. Without a connection it names the last error of a connect, too.
func (c *Client) endOf(ctx context.Context) error {
	if connected, _ := c.core.connection.isConnected(); connected {
		return ctx.Err()
	}
	if cause := c.core.connection.lastError(); cause != nil {
		return fmt.Errorf("curator: not connected: %w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// Reset gives up the current session and begins another: listeners get Lost and Reconnected. The ephemeral nodes
// of the old session remain until its timeout. In Java: getZookeeperClient().reset(), which closes the session.
func (c *Client) Reset() error {
	if err := c.core.executor.Err(); err != nil {
		return err
	}
	c.core.connection.reset()
	return nil
}

// WhoAmI returns the identities by which the server of the connection knows the client, for its ACLs: its address, and
// those of [WithAuth], [WithSASL], [Client.AddAuth] and a client certificate. ctx bounds the wait. The server must be
// 3.7 or newer; others fail it with [ErrUnimplemented], and close the connection. In Java: ZooKeeper.whoAmI.
func (c *Client) WhoAmI(ctx context.Context) ([]builders.Identity, error) {
	return c.operations.WhoAmI(ctx)
}

// AddAuth adds credentials to those of [WithAuth]: ("digest", "user:password"). They count for all operations that are
// begun after it, and every later connection sends them too. It does not wait. If the servers refuse them, the client
// ends with zk.ErrAuthFailed, as with WithAuth. Errors: [ErrBadArguments], [ErrNotStarted], [ErrClosed]. In
// Java: getZooKeeper().addAuthInfo, whose credentials are lost with the session.
func (c *Client) AddAuth(scheme string, auth []byte) error {
	a := jute.Auth{Scheme: scheme, Auth: slices.Clone(auth)}
	if wrong := checkAuth(a); wrong != "" {
		return fmt.Errorf("curator: add auth: %w: %s", ErrBadArguments, wrong)
	}
	if err := c.core.executor.Err(); err != nil {
		return err
	}
	c.core.connection.addAuth(a)
	return nil
}

// AddConnectionStateListener adds a listener to the connection state; remove removes it. These listeners are called in
// order, on a goroutine of their own, and get all changes after they were added. Close waits for them; none is called
// after that. The context of a listener of the client, of this and of the other kinds, ends when the client is closed:
// when Close no longer waits for the listeners. In Java: getConnectionStateListenable.
func (c *Client) AddConnectionStateListener(fn callbacks.Listener[ConnectionState]) (remove func()) {
	if c.library {
		return c.core.states.library.Add(fn)
	}
	return c.core.states.listeners.Add(fn)
}

// AddCuratorListener adds a listener to the results of background operations without a callback, to the events of
// watches set with Watched, and to the event that the client is closing, which comes before the results of operations
// that are still in flight; remove removes it. In Java: getCuratorListenable.
func (c *Client) AddCuratorListener(fn callbacks.Listener[callbacks.Event]) (remove func()) {
	return c.core.listeners.Add(fn)
}

// AddUnhandledErrorListener adds a listener to failures without another receiver; remove removes it. These listeners
// may be called concurrently. In Java: getUnhandledErrorListenable.
func (c *Client) AddUnhandledErrorListener(fn callbacks.Listener[UnhandledError]) (remove func()) {
	return c.core.unhandled.Add(fn)
}

// ReportUnhandled reports a failure without another receiver to the unhandled-error listeners, to the log, with the ids
// of the span of ctx, and to the metrics. message names the failed task. Recipes use it, and programs may. It waits
// only for the listeners, and is safe for concurrent use.
func (c *Client) ReportUnhandled(ctx context.Context, message string, err error) {
	c.core.reportUnhandled(ctx, inBackground, message, err)
}

// ConnectionStateErrorPolicy returns the policy of the client.
func (c *Client) ConnectionStateErrorPolicy() ErrorPolicy { return c.core.cfg.errorPolicy }

// Namespace returns the namespace of the client, "" for the whole tree.
func (c *Client) Namespace() string { return c.operations.Namespace() }

// Fenced returns a view of the client whose writes take effect only while all of the nodes exist. The view sends each
// write as a transaction that checks the nodes first; that includes the parents of a create, and operations in the
// background. Reads are not fenced. Use it where a process must not write any more once another one has taken over,
// even if it does not know that yet. Locks and elections have such a view: see Hold.Client in package locks.
//
// holding is a context that ends when the process no longer holds the nodes, as Hold.Context does. A write fails with
//   - lost, if the server finds that a node is gone; and with ErrUncertain too, if that was a second try;
//   - the cause of holding, without a request, if holding has ended;
//   - [ErrUncertain], if its answer was lost. It may have taken effect, and is not tried again. A write that can be
//     repeated is: a SetData of any version, a Create with protection, an operation with Idempotent or Quietly;
//   - zk.ErrNoAuth that names the node, if the client has no right to read it;
//   - [ErrUnimplemented], if it is a SetACL or a Reconfig: the protocol has none in a transaction.
//
// A fixed name is no fence: when the next holder has created its node under the same name, a write of the last one
// finds that node and takes effect. The names of locks and elections are never used again. For a fixed name see
// [Client.Claim].
//
// A view of the view is fenced too. A fence of a fenced view adds its nodes. The nodes are paths of c and of its
// namespace. Java has no fenced writes.
func (c *Client) Fenced(holding context.Context, lost error, nodes ...string) *Client {
	return c.with(c.operations.Fenced(holding, lost, nodes))
}

// UsingNamespace returns a view of the client that works below /ns. Its paths are without the namespace. The client
// creates the nodes of the namespace, as containers, before the first operation. The views of a client share all but
// the namespace; "" is the view without one. ns has no slash at its beginning. With an invalid namespace every
// operation of the view fails with an error that wraps zk.ErrInvalidPath. In Java: usingNamespace.
func (c *Client) UsingNamespace(ns string) *Client {
	return c.with(c.operations.UsingNamespace(ns))
}

// with returns a view of the client with these operations.
func (c *Client) with(of any) *Client {
	return &Client{core: c.core, operations: of.(operations), view: true, library: c.library}
}

// The verbs. Each returns a builder; see package builders.

// Create builds a create of a node.
func (c *Client) Create() builders.Create { return c.operations.Create() }

// Delete builds a delete of a node.
func (c *Client) Delete() builders.Delete { return c.operations.Delete() }

// CheckExists builds a check whether a node exists.
func (c *Client) CheckExists() builders.CheckExists { return c.operations.CheckExists() }

// GetData builds a read of a node's data.
func (c *Client) GetData() builders.GetData { return c.operations.GetData() }

// SetData builds a write of a node's data.
func (c *Client) SetData() builders.SetData { return c.operations.SetData() }

// GetChildren builds a list of a node's children.
func (c *Client) GetChildren() builders.GetChildren { return c.operations.GetChildren() }

// GetEphemerals builds a list of the session's ephemeral nodes.
func (c *Client) GetEphemerals() builders.GetEphemerals { return c.operations.GetEphemerals() }

// GetAllChildrenNumber builds a count of all nodes below a node.
func (c *Client) GetAllChildrenNumber() builders.GetAllChildrenNumber {
	return c.operations.GetAllChildrenNumber()
}

// MultiRead builds a read of many nodes with one request.
func (c *Client) MultiRead() builders.MultiRead { return c.operations.MultiRead() }

// GetACL builds a read of a node's ACL.
func (c *Client) GetACL() builders.GetACL { return c.operations.GetACL() }

// SetACL builds a write of a node's ACL.
func (c *Client) SetACL() builders.SetACL { return c.operations.SetACL() }

// Sync builds a sync: the server catches up with the leader.
func (c *Client) Sync() builders.Sync { return c.operations.Sync() }

// Transaction builds a transaction of operations that TransactionOp builds.
func (c *Client) Transaction() builders.Transaction { return c.operations.Transaction() }

// TransactionOp builds the operations of a transaction.
func (c *Client) TransactionOp() builders.TransactionOp { return c.operations.TransactionOp() }

// Watches builds additions and removals of watches.
func (c *Client) Watches() builders.Watches { return c.operations.Watches() }

// GetConfig builds a read of the ensemble's configuration.
func (c *Client) GetConfig() builders.GetConfig { return c.operations.GetConfig() }

// Reconfig builds a change of the ensemble's members.
func (c *Client) Reconfig() builders.Reconfig { return c.operations.Reconfig() }

// EnsurePath creates path and its missing parents as persistent nodes without data. A node that exists stays as it is:
// one that was created as a container remains a container. The ACLs are those of [WithACLProvider]. ctx bounds the
// wait. A node that another client deletes meanwhile is created again, but EnsurePath does not keep it. Errors:
// zk.ErrNoAuth if a node is missing and may not be created, [ErrNoChroot] if the chroot is missing. In Java:
// EnsurePath.ensure, newNamespaceAwareEnsurePath, ZKPaths.mkdirs.
func (c *Client) EnsurePath(ctx context.Context, path string) error {
	// It looks first: a server refuses the create of a node that exists to a client that may not create it.
	stat, err := c.look(path).ForPath(ctx, path)
	switch {
	case stat != nil, errors.Is(err, zk.ErrNoAuth): // a node that we may not read exists
		return nil
	case err != nil:
		return err
	}
	_, err = c.Create().CreatingParentsIfNeeded().Idempotent().Uncompressed().ForPath(ctx, path, []byte{})
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// look builds a look at path. That at the chroot itself fails with [ErrNoChroot] if it is missing: it must not be
// created.
func (c *Client) look(path string) builders.CheckExists {
	if path == "/" && c.Namespace() == "" {
		return c.CheckExists().CreatingParentsIfNeeded()
	}
	return c.CheckExists()
}

// CreateContainers creates path and its missing parents as containers: the server deletes each of them about a minute
// after its last child is gone, and a later create below it fails with zk.ErrNoNode unless it creates its parents. For
// nodes that stay see [Client.EnsurePath]. In Java: createContainers.
func (c *Client) CreateContainers(ctx context.Context, path string) error {
	_, err := c.CheckExists().CreatingParentContainersIfNeeded().ForPath(ctx, zkpath.Join(path, "foo"))
	var op *OpError
	if errors.As(err, &op) {
		return &OpError{Op: "createContainers", Path: path, Attempts: op.Attempts, Err: op.Err}
	}
	return err
}

// CurrentConfig returns the last configuration of the ensemble that the tracker has read, nil without one. In Java:
// getCurrentConfig.
func (c *Client) CurrentConfig() []byte { return c.core.tracker.current() }

func (k *core) dispatch(t dispatch.Task) { k.dispatcher.Push(t) }

// stateChanged runs before the listeners of the connection state.
func (k *core) stateChanged(c stateChange) {
	k.telemetry.StateChanged(c.state.word(), c.at)
	attrs := append([]slog.Attr{slog.String("state", c.state.String())}, c.attrs...)
	k.cfg.logger.LogAttrs(exec.Root, slog.LevelInfo, "connection state", attrs...)
	k.tracker.stateChanged(c.state)
}

// dispatchWatcher is called for each event of a watcher.
func (k *core) dispatchWatcher(run func(ctx context.Context)) {
	k.dispatch(dispatch.Func(func() { k.guard(exec.Root, "watcher", func() { run(exec.Root) }) }))
}

// dispatchLibraryWatcher is called for each event of a watcher of the library.
func (k *core) dispatchLibraryWatcher(run func(ctx context.Context)) {
	k.dispatcher.PushLibrary(dispatch.Func(func() { run(exec.Root) }))
}

// deliver delivers the result of a background operation. It runs on the dispatcher.
func (k *core) deliver(ctx context.Context, cb callbacks.BackgroundCallback, ev callbacks.Event) {
	if cb == nil {
		k.notify(ctx, ev)
		return
	}
	k.guard(ctx, "background callback", func() { cb(ctx, ev) })
}

func (k *core) notify(ctx context.Context, ev callbacks.Event) {
	if !k.telemetry.HasDriver() {
		k.callListeners(ctx, ev)
		return
	}
	start := time.Now()
	k.callListeners(ctx, ev)
	k.telemetry.Notified(time.Since(start))
}

func (k *core) callListeners(ctx context.Context, ev callbacks.Event) {
	if k.listeners.Len() > 0 {
		ctx = listeners.Until(k.listening, ctx)
		k.listeners.Notify(ctx, ev, func(fn func()) { k.guard(ctx, "listener", fn) })
	}
}

// notifyWatched is the function of the default watcher.
func (k *core) notifyWatched(ctx context.Context, ev zk.Event) {
	k.notify(ctx, callbacks.Event{Type: callbacks.Watched, Path: ev.Path, Watched: ev})
}

// guard runs code of the program and reports its panic.
func (k *core) guard(ctx context.Context, what string, fn func()) {
	if err := usercode.Call(what, fn); err != nil {
		source := inListener
		if strings.HasSuffix(what, "callback") {
			source = inCallback
		}
		k.reportUnhandled(ctx, source, "panic in "+what, err)
	}
}

// The sources of unhandled errors, for telemetry.
const (
	inBackground = "background"
	inListener   = "listener"
	inCallback   = "callback"
	inTelemetry  = "telemetry"
)

func (k *core) reportUnhandled(ctx context.Context, source, message string, err error) {
	k.report(ctx, slog.LevelError, source, message, err)
}

func (k *core) report(ctx context.Context, level slog.Level, source, message string, err error) {
	ctx = context.WithoutCancel(ctx) // the context of a listener may have ended
	k.telemetry.Unhandled(ctx, source, err)
	k.cfg.logger.LogAttrs(ctx, level, message, append(telemetry.LogAttrs(ctx), slog.Any("error", err))...)
	k.unhandled.Notify(listeners.Until(k.listening, ctx), UnhandledError{message, err}, func(fn func()) {
		if err := usercode.Call("unhandled-error listener", fn); err != nil { // a listener for unhandled errors panics
			k.cfg.logger.LogAttrs(ctx, slog.LevelError, "panic in unhandled-error listener",
				append(telemetry.LogAttrs(ctx), slog.Any("error", err))...)
		}
	})
}

// WatcherRemoveClient is a view of a client that remembers the watchers that are set through it. In Java:
// WatcherRemoveCuratorFramework.
type WatcherRemoveClient struct {
	*Client
}

// WatcherRemoving returns a view of the client that remembers its watchers, so that all can be removed at once. In
// Java: newWatcherRemoveCuratorFramework.
func (c *Client) WatcherRemoving() *WatcherRemoveClient {
	return &WatcherRemoveClient{c.with(c.operations.WatcherRemoving())}
}

// RemoveWatchers removes all watchers that were set through this view and have not ended. They get no further events,
// even without a connection; the server's watches are removed in the background.
func (w *WatcherRemoveClient) RemoveWatchers(ctx context.Context) { w.operations.RemoveWatchers(ctx) }

// WatcherCount returns the number of watchers that were set through this view and have not ended.
func (w *WatcherRemoveClient) WatcherCount() int { return w.operations.WatcherCount() }
