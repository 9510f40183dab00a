package builders

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/zkpath"
)

// CreateMode is the kind of node to create.
type CreateMode int32

// The create modes, with the values of the protocol.
const (
	Persistent CreateMode = iota
	Ephemeral
	PersistentSequential
	EphemeralSequential
	Container
	PersistentWithTTL
	PersistentSequentialWithTTL
)

var modeNames = [...]string{
	"PERSISTENT", "EPHEMERAL", "PERSISTENT_SEQUENTIAL", "EPHEMERAL_SEQUENTIAL", "CONTAINER", "PERSISTENT_WITH_TTL",
	"PERSISTENT_SEQUENTIAL_WITH_TTL",
}

// String returns Java's name of the mode.
func (m CreateMode) String() string {
	if !m.valid() {
		return "UNKNOWN"
	}
	return modeNames[m]
}

// IsEphemeral reports whether the node ends with its session.
func (m CreateMode) IsEphemeral() bool { return m == Ephemeral || m == EphemeralSequential }

// IsSequential reports whether the server appends a number to the name.
func (m CreateMode) IsSequential() bool {
	return m == PersistentSequential || m == EphemeralSequential || m == PersistentSequentialWithTTL
}

// HasTTL reports whether the server removes the node after a time without a change.
func (m CreateMode) HasTTL() bool { return m == PersistentWithTTL || m == PersistentSequentialWithTTL }

func (m CreateMode) valid() bool { return m >= 0 && int(m) < len(modeNames) }

// maxTTL is the longest TTL that the server can store.
const maxTTL = (1<<40 - 1) * time.Millisecond

// request returns the create of a node of this mode.
func (m CreateMode) request(path string, data []byte, acl []zk.ACL, ttl time.Duration) jute.Request {
	r := jute.Request{Op: jute.OpCreate2, Path: path, Data: data, ACL: acl, Flags: int32(m)}
	switch {
	case m == Container:
		r.Op = jute.OpCreateContainer
	case m.HasTTL():
		r.Op, r.TTL = jute.OpCreateTTL, ttl.Milliseconds()
	}
	return r
}

// checkMode returns an error for an invalid mode or TTL.
func (c *call) checkMode(m CreateMode, ttl time.Duration) error {
	switch {
	case !m.valid():
		return c.badArguments("create mode %d", int32(m))
	case m.HasTTL() && errtext.TooShort(ttl) != "":
		return c.badArguments("TTL %s", errtext.TooShort(ttl))
	case m.HasTTL() && (ttl < time.Millisecond || ttl > maxTTL):
		return c.badArguments("mode %v needs a TTL between 1 ms and %v, not %v", m, maxTTL, ttl)
	case !m.HasTTL() && ttl != 0:
		return c.badArguments("mode %v has no TTL", m)
	}
	return nil
}

// Create builds a create. Every step returns a changed copy: a Create may be kept, branched and shared between
// goroutines. Nothing happens before ForPath. In Java: CreateBuilder.
type Create struct {
	env        *environment
	acl        []zk.ACL
	mode       CreateMode
	aclParents bool
	parents    bool
	containers bool
	protected  bool
	protection string
	compress   option
	idempotent bool
	orSet      bool
	version    int32
	ttl        time.Duration
	stat       *zk.Stat
}

// WithMode sets the kind of node; the default is [Persistent].
func (c Create) WithMode(m CreateMode) Create { c.mode = m; return c }

// WithTTL sets the time without a change, and without children, after which the server removes a node of the modes with
// a TTL. The server must have TTL nodes enabled.
func (c Create) WithTTL(ttl time.Duration) Create { c.ttl = ttl; return c }

// WithACL sets the ACL of the node, instead of that of the client's [ACLProvider].
func (c Create) WithACL(acl ...zk.ACL) Create { c.acl, c.aclParents = clone(acl), false; return c }

// WithACLAppliedToParents is WithACL also for the parents that ForPath creates. In Java: withACL(list, true).
func (c Create) WithACLAppliedToParents(acl ...zk.ACL) Create {
	c.acl, c.aclParents = clone(acl), true
	return c
}

// CreatingParentsIfNeeded creates missing parents as persistent nodes without data.
func (c Create) CreatingParentsIfNeeded() Create { c.parents, c.containers = true, false; return c }

// CreatingParentContainersIfNeeded creates missing parents as container nodes without data, which the server removes
// some time after their last child is gone. They are persistent nodes if the server or the client's options have no
// containers.
func (c Create) CreatingParentContainersIfNeeded() Create {
	c.parents, c.containers = true, true
	return c
}

// WithProtection puts a random id in front of the node's name ("_c_<uuid>-"), so that a node is found again and not
// left behind if the answer to its create is lost. A retry adopts the node. After a failure or the end of the context,
// the client removes it in the background. It also removes, and does not adopt, a node of an earlier session. Each
// ForPath has an id of its own. Use it for every sequential ephemeral node that others wait for.
func (c Create) WithProtection() Create { c.protected = true; return c }

// WithProtectionID is WithProtection with a given id, in the form that zkpath.NewProtectionID returns. It is for the
// owner of a node that is created again under one name.
func (c Create) WithProtectionID(id string) Create { c.protected, c.protection = true, id; return c }

// Compressed compresses the data with the client's [CompressionProvider].
func (c Create) Compressed() Create { c.compress = on; return c }

// Uncompressed writes the data unchanged, whatever the client's default.
func (c Create) Uncompressed() Create { c.compress = off; return c }

// OrSetData sets the data of the node if it exists already. In Java: orSetData().
func (c Create) OrSetData() Create { return c.OrSetDataWithVersion(-1) }

// OrSetDataWithVersion is OrSetData that fails with zk.ErrBadVersion if the existing node has another version.
func (c Create) OrSetDataWithVersion(version int32) Create {
	c.orSet, c.version = true, version
	return c
}

// Idempotent succeeds if the node exists with the same data at version 0: that is how a create with a lost answer
// leaves it.
func (c Create) Idempotent() Create { c.idempotent = true; return c }

// StoringStatIn stores the Stat of the created node in stat before ForPath returns, or in the background before
// the callback is called.
func (c Create) StoringStatIn(stat *zk.Stat) Create { c.stat = stat; return c }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (c Create) InBackground(cb callbacks.BackgroundCallback) BackgroundData {
	return BackgroundData{background{cb: cb}, c.start}
}

// ForPath creates the node and returns its path, with protection prefix and sequence number. data nil stands for the
// default data of the client, an empty slice for no data. A path of a sequential mode may end in a slash.
//
// ctx bounds the wait. When it ends first, the error is that of ctx, with [ErrUncertain] if the node may be created;
// with protection, the client removes it. Other errors: zk.ErrNodeExists, zk.ErrNoNode (a parent is missing),
// zk.ErrNoChildrenForEphemerals, zk.ErrNoAuth, and, when the retry policy has given up, connection loss.
func (c Create) ForPath(ctx context.Context, path string, data []byte) (string, error) {
	if c.idempotent { // it may compare data when ctx has ended
		data = clone(data)
	}
	o := recycled[createOp](&createOps)
	if err := o.prepare(c, path, data); err != nil {
		return "", err
	}
	return perform(ctx, &o.call, o)
}

// Submit submits the create and does not wait, so that later requests travel with it. The caller must wait for the
// future. Submit and Wait are ForPath in two steps. Unlike a background callback they need no dispatcher.
func (c Create) Submit(ctx context.Context, path string, data []byte) Future[string] {
	o := new(createOp)
	if err := o.prepare(c, path, clone(data)); err != nil {
		return Future[string]{err: err}
	}
	return submit(ctx, &o.call, o, o.result)
}

func (c Create) start(ctx context.Context, path string, data []byte, b background) error {
	o := recycled[createOp](&createOps)
	data, o.own = jute.CopyBeside(data)
	if err := o.prepare(c, path, data); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

func (o *createOp) prepare(c Create, path string, data []byte) error {
	o.b = c
	if err := o.init(c.env, callbacks.Create, "create", path, c.mode.IsSequential()); err != nil {
		return err
	}
	if err := o.checkMode(c.mode, c.ttl); err != nil {
		return err
	}
	if c.protection != "" && !zkpath.IsProtected(zkpath.Protect(c.protection, "n")) {
		return o.badArguments("protection id %q", c.protection)
	}
	var err error
	if o.data, err = c.env.data(path, data, c.compress); err != nil {
		return o.wrap(err)
	}
	if c.protected {
		if o.b.protection == "" {
			o.b.protection = zkpath.NewProtectionID()
		}
		o.full = zkpath.ProtectPath(o.b.protection, o.full)
	}
	if o.acls, err = o.resolveACLs(); err != nil {
		return o.wrap(err)
	}
	return nil
}

// resolveACLs calls the provider for all nodes that the create may have to create, except those with a given ACL.
func (o *createOp) resolveACLs() (answers acls, err error) {
	if o.env.err != nil {
		return nil, nil
	}
	if len(o.b.acl) == 0 {
		if answers, err = o.env.resolve(nil, o.full); err != nil {
			return nil, err
		}
	}
	if o.makesParents() && len(o.parentACL()) == 0 {
		return o.env.resolveTree(answers, zkpath.Parent(o.full))
	}
	return answers, nil
}

// parentACL returns the ACL for the parents.
func (o *createOp) parentACL() []zk.ACL {
	if o.b.aclParents {
		return o.b.acl
	}
	return nil
}

// createOp is the protocol of a create. The last answer of one that succeeds has the Stat of the node.
type createOp struct {
	call
	b      Create
	data   []byte
	acls   acls
	name   string   // of the created node
	ours   bool     // the node is of this call
	rounds int32    // number of repairs after changes by others
	known  *zk.Stat // of a node that this create has created, while the rest of its Stat is still missing
}

var createOps sync.Pool

// Recycle returns its memory to the pool.
func (o *createOp) Recycle() { recycle(&createOps, o) }

// Describe adds the mode.
func (o *createOp) Describe() telemetry.Operation {
	what := o.call.Describe()
	what.Mode = o.b.mode.String()
	return what
}

// maxRounds bounds the repairs of an operation after changes by others.
const maxRounds = 10

// Begin creates the node. After an attempt with an unknown outcome it looks for the node first.
func (o *createOp) Begin() {
	if o.known != nil {
		o.findStat(o.name)
		return
	}
	if o.b.protected && o.op.Attempts() > 1 {
		o.find()
		return
	}
	o.create()
}

// HasSteps reports whether an attempt after a lost answer may have several requests.
func (o *createOp) HasSteps() bool {
	return o.b.protected || o.b.idempotent || o.b.orSet || o.known != nil || o.makesParents()
}

func (o *createOp) create() {
	acl := o.env.aclOf(o.full, o.b.acl, o.acls)
	repeatable := o.b.protected || o.b.idempotent || o.b.orSet && o.b.version == -1
	o.write(o.b.mode.request(o.full, o.data, acl, o.b.ttl), repeatable, nil)
}

// Replied handles the answer to the create.
func (o *createOp) Replied() {
	switch err := o.op.Err(); {
	case err == nil:
		o.ours = true
		o.created(o.op.Reply().Path)
	case err == zk.ErrNoNode && o.makesParents() && o.again():
		container := o.b.containers || !o.b.parents
		o.makeParents(zkpath.Parent(o.full), container, o.parentACL(), o.acls, func(err error) {
			if err != nil && err != zk.ErrNoNode {
				o.op.Finish(err)
				return
			}
			o.create()
		})
	case err == zk.ErrNodeExists && o.b.orSet:
		o.set()
	case err == zk.ErrNodeExists && o.b.idempotent:
		o.compare()
	case err == zk.ErrNoNode:
		o.findParent(o.full, o.op.Finish)
	default:
		o.op.Finish(err)
	}
}

// makesParents reports whether to create missing parents: if the caller has set it, and for the namespace itself, which
// the server may have removed as an empty container.
func (o *createOp) makesParents() bool {
	ns := o.env.namespace.prefix
	return o.b.parents || ns != "" && zkpath.Parent(o.full) == ns
}

func (o *createOp) again() bool { o.rounds++; return o.rounds <= maxRounds }

// set writes the data to the existing node.
func (o *createOp) set() {
	r := jute.Request{Op: jute.OpSetData, Path: o.full, Data: o.data, Version: o.b.version}
	o.write(r, o.b.version == -1, func() {
		switch err := o.op.Err(); {
		case err == nil:
			o.done(o.full)
		case err == zk.ErrNoNode && o.again(): // removed meanwhile
			o.create()
		default:
			o.op.Finish(err)
		}
	})
}

// compare adopts an existing node with the data and version that a create leaves.
func (o *createOp) compare() {
	o.send(jute.Request{Op: jute.OpGetData, Path: o.full}, func() {
		switch err := o.op.Err(); {
		case err == nil && o.op.Reply().Stat.Version == 0 && bytes.Equal(o.op.Reply().Data, o.data):
			o.done(o.full)
		case err == nil:
			o.op.Finish(zk.ErrNodeExists)
		case err == zk.ErrNoNode && o.again(): // removed meanwhile
			o.create()
		default:
			o.op.Finish(err)
		}
	})
}

// find looks for a node with our prefix: an attempt with a lost answer may have created it. The connected server may
// not have it yet, so it has to catch up first.
func (o *createOp) find() { o.catchUp(zkpath.Parent(o.full), o.list) }

func (o *createOp) list() {
	parent := zkpath.Parent(o.full)
	o.send(jute.Request{Op: jute.OpGetChildren2, Path: parent}, func() {
		if err := o.op.Err(); err != nil && err != zk.ErrNoNode {
			o.op.Finish(err)
			return
		}
		o.op.SetUncertain(false)
		prefix := zkpath.ProtectedPrefix(o.b.protection)
		for _, child := range o.op.Reply().Children {
			if strings.HasPrefix(child, prefix) {
				o.adopt(zkpath.Join(parent, child))
				return
			}
		}
		o.create()
	})
}

// adopt accepts a found node as ours, unless it is an ephemeral one of an earlier session, which is about to vanish.
func (o *createOp) adopt(path string) {
	o.send(jute.Request{Op: jute.OpExists, Path: path}, func() {
		switch err := o.op.Err(); {
		case err == zk.ErrNoNode && o.again():
			o.create()
		case err != nil:
			o.op.Finish(err)
		case o.b.mode.IsEphemeral() && o.op.Reply().Stat.EphemeralOwner != o.op.Executor().Conn().SessionID():
			deleteGuaranteed(o.op.Context(), o.env, path)
			before := o.full
			name := strings.LastIndexByte(before, '/') + 1
			unprotected := before[:name] + before[name+len(zkpath.ProtectedPrefix(o.b.protection)):]
			o.b.protection = zkpath.NewProtectionID() // no retry may find the old name
			o.full = zkpath.ProtectPath(o.b.protection, unprotected)
			if o.acls != nil {
				o.acls[o.full] = o.acls[before]
			}
			o.create()
		default:
			o.ours = true
			o.done(path)
		}
	})
}

// created continues when the node exists. Servers before 3.8.2 do not return its Stat in a transaction, and a fenced
// client sends transactions (ZOOKEEPER-4026).
func (o *createOp) created(full string) {
	zxid := o.op.Zxid()
	if o.env.fence == nil || o.op.Reply().Stat.Czxid == zxid || o.b.stat == nil && !o.op.Background() {
		o.done(full)
		return
	}
	o.known = &zk.Stat{Czxid: zxid, Mzxid: zxid, Pzxid: zxid, DataLength: int32(len(o.data))}
	if o.b.mode.IsEphemeral() {
		o.known.EphemeralOwner = o.op.AnsweredIn()
	}
	o.op.SetUncertain(true)
	o.findStat(full)
}

// findStat reads the Stat of the node that we have created. If another node, or none, is there by now, the Stat is that
// of a new node, without the times, which only the server has.
func (o *createOp) findStat(full string) {
	o.name = full // until the read has ended
	o.send(jute.Request{Op: jute.OpExists, Path: full}, func() {
		if o.op.Err() != nil || o.op.Reply().Stat.Czxid != o.known.Czxid {
			o.op.Reply().Stat = *o.known
		}
		o.done(full)
	})
}

func (o *createOp) done(full string) {
	o.name = o.env.namespace.strip(full)
	o.op.Finish(nil)
}

// CleanUp removes the node of a failed protected create.
func (o *createOp) CleanUp(err error) {
	switch {
	case !o.b.protected || !o.op.Sent():
	case err == nil && !o.ours: // it existed before
	case err == nil: // the caller had given up
		deleteGuaranteed(o.op.Context(), o.env, o.env.namespace.full(o.name))
	case exec.IsIndefinite(err) || o.op.Attempts() > 1:
		findAndDelete(o.op.Context(), o.env, zkpath.Parent(o.full), zkpath.ProtectedPrefix(o.b.protection))
	}
}

func (o *createOp) result() (string, error) {
	o.store()
	return o.name, nil
}

func (o *createOp) store() {
	if o.b.stat != nil {
		*o.b.stat = o.op.Reply().Stat
	}
}

// Deliver hands the result to the callback.
func (o *createOp) Deliver() {
	ev := callbacks.Event{Data: o.data}
	if o.op.Result() == nil {
		o.store()
		ev.Name, ev.Stat = o.name, o.statCopy()
	}
	o.deliver(ev)
}
