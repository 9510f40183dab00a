package builders

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
)

// Transaction builds a transaction: operations that take effect together or not at all. In Java:
// CuratorMultiTransaction.
type Transaction struct {
	env  *environment
	zxid *int64
}

// StoringZxidIn stores the id of the transaction in zxid before ForOperations returns, or in the background before the
// callback is called. All changes of the transaction have this id, and it is the Czxid of all nodes that it has
// created.
func (t Transaction) StoringZxidIn(zxid *int64) Transaction { t.zxid = zxid; return t }

// InBackground makes ForOperations asynchronous: it returns once the operation is queued, and cb receives the results,
// or the client's listeners if cb is nil.
func (t Transaction) InBackground(cb callbacks.BackgroundCallback) BackgroundTransaction {
	return BackgroundTransaction{background{cb: cb}, t.start}
}

// ForOperations executes ops as one and returns their results in order. When one fails, none takes effect. The error is
// that of the failed operation, with its index: "op 2 setData /a/b: version conflict" is that of results[2]. A
// transaction that is retried after a lost answer may find its own work: guard it with a check of a version, or with
// [TransactionCreate.WithProtection]. A transaction with a fence fails with [ErrUncertain] then, unless it can be
// repeated. When ctx ends first, the error is that of ctx, with [ErrUncertain] if it may have taken effect; a part of
// one with a protected create is undone then: see [TransactionCreate.WithProtection].
func (t Transaction) ForOperations(ctx context.Context, ops ...TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	o, err := t.operation(ops)
	if err != nil {
		return nil, err
	}
	err = o.foreground(ctx, o)
	if ctx.Err() != nil && err != nil {
		return nil, err // the answer may still be written into o
	}
	if err == nil {
		o.store()
	}
	return o.results(), o.named(err)
}

// Submit submits the transaction and does not wait: see [Create.Submit]. The results and the error are those of
// ForOperations.
func (t Transaction) Submit(ctx context.Context, ops ...TransactionOperation) Future[[]callbacks.OperationResult] {
	o, err := t.operation(ops)
	if err != nil {
		return Future[[]callbacks.OperationResult]{err: err}
	}
	f := submit(ctx, &o.call, o, func() ([]callbacks.OperationResult, error) {
		o.store()
		return o.results(), nil
	})
	if wait := f.wait; wait != nil {
		f.wait = func(ctx context.Context) ([]callbacks.OperationResult, error) {
			results, err := wait(ctx)
			if err != nil && !exec.IsIndefinite(err) { // else the answer may still be written into o
				results = o.results()
			}
			return results, o.named(err)
		}
	}
	return f
}

func (t Transaction) start(ctx context.Context, ops []TransactionOperation, b background) error {
	o, err := t.operation(ops)
	if err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

func (t Transaction) operation(ops []TransactionOperation) (*transactionOp, error) {
	o := &transactionOp{ops: clone(ops), into: t.zxid}
	o.env, o.typ, o.verb = t.env, callbacks.Transaction, "multi"
	if len(ops) == 0 {
		return nil, o.badArguments("no operations")
	}
	o.requests = make([]jute.Request, len(ops))
	for i := range ops {
		op := &ops[i] // it is large
		if op.err != nil {
			return nil, op.err
		}
		if op.typ == 0 {
			return nil, o.badArguments("operation %d was not built with a TransactionOp", i)
		}
		o.requests[i] = op.request
		o.fenced = o.fenced || op.guard != nil
		if op.protected {
			o.protect(i)
		}
	}
	for i := range ops {
		if err := ops[i].env.ensureNamespace(); err != nil {
			return nil, o.wrap(err)
		}
	}
	return o, nil
}

// transactionOp is the protocol of a transaction.
type transactionOp struct {
	call
	ops       []TransactionOperation
	requests  []jute.Request
	into      *int64
	protected []protectedCreate
	zxid      int64
	fenced    bool // one of its operations is a fence
	executing bool // the current request is the transaction itself
	done      bool // an attempt with a lost answer has taken effect
}

// isRepeatable reports whether it can be sent again after a lost answer: it finds its own work, or has the same effect
// again.
func (o *transactionOp) isRepeatable() bool {
	return len(o.protected) > 0 || !slices.ContainsFunc(o.requests, func(r jute.Request) bool {
		return r.Op != jute.OpSetData && r.Op != jute.OpCheck || r.Version != -1
	})
}

// Describe returns the kind of the operations, if all are of one kind.
func (o *transactionOp) Describe() telemetry.Operation {
	what := o.call.Describe()
	what.Batch = len(o.ops)
	for i := range o.ops {
		if o.ops[i].typ != o.ops[0].typ {
			return what
		}
	}
	what.Name += " " + o.ops[0].verb()
	return what
}

// Begin sends the transaction. After an attempt with an unknown outcome it sends it only if that attempt has not taken
// effect.
func (o *transactionOp) Begin() {
	if len(o.protected) > 0 && o.op.Attempts() > 1 {
		o.find()
		return
	}
	o.again()
}

// again sends the transaction, after an attempt with a lost answer only if the nodes that have to have a version are
// the same ones.
func (o *transactionOp) again() {
	if o.op.Attempts() > 1 {
		o.executing = false
		o.unlessNewer(o.execute, o.versioned()...)
		return
	}
	o.execute()
}

// versioned returns the paths of the nodes that have to have a version.
func (o *transactionOp) versioned() (paths []string) {
	for i := range o.requests {
		r := &o.requests[i]
		if r.Version != -1 && (r.Op == jute.OpSetData || r.Op == jute.OpDelete || r.Op == jute.OpCheck) {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// HasSteps reports whether an attempt after a lost answer has several requests.
func (o *transactionOp) HasSteps() bool { return len(o.protected) > 0 || len(o.versioned()) > 0 }

func (o *transactionOp) execute() {
	o.executing = true
	r := jute.Request{Op: jute.OpMulti, Ops: o.expanded()}
	switch {
	case o.env.fence != nil || !o.fenced:
		o.write(r, o.isRepeatable(), nil)
	case o.prepare(r):
		o.op.SendWrite(o.isRepeatable(), nil)
	}
}

// Replied handles the answer to the transaction.
func (o *transactionOp) Replied() {
	o.zxid = o.op.Zxid()
	err := o.fold(o.op.Err())
	if err == nil && len(o.op.Reply().Results) != len(o.ops) { // the server has answered another request
		err = jute.ErrMarshalling
	}
	o.op.Finish(err)
}

func (o *transactionOp) store() {
	if o.into != nil {
		*o.into = o.zxid
	}
}

// results pairs the operations with their results from the server.
func (o *transactionOp) results() []callbacks.OperationResult {
	if o.done {
		return o.found()
	}
	if !o.executing || len(o.op.Reply().Results) != len(o.ops) {
		return nil
	}
	out := make([]callbacks.OperationResult, len(o.ops))
	for i := range out {
		r, op := &o.op.Reply().Results[i], &o.ops[i] // they are large
		out[i] = callbacks.OperationResult{Type: op.typ, ForPath: op.path, Err: op.guard.meaning(r.Code.Err())}
		if r.Op == jute.OpError || o.op.Result() != nil {
			continue
		}
		switch op.typ {
		case callbacks.OperationCreate:
			out[i].ResultPath = op.env.namespace.strip(r.Path)
			if r.Op != jute.OpCreate { // some servers answer a create2 in a transaction like a create
				out[i].Stat = &r.Stat
			}
		case callbacks.OperationSetData:
			out[i].Stat = &r.Stat
		}
	}
	return out
}

// Deliver hands the result to the callbacks.
func (o *transactionOp) Deliver() {
	if o.op.Result() == nil {
		o.store()
	}
	o.deliver(callbacks.Event{Results: o.results(), Err: o.refused(o.op.Result())})
}

// TransactionOperation is an operation of a transaction; [TransactionOp] builds it. In Java: CuratorOp.
type TransactionOperation struct {
	env     *environment
	typ     callbacks.OperationType
	path    string
	request jute.Request
	guard   *guard // of a fence, which has several requests
	err     error

	protected bool
	mode      CreateMode
}

// verb is ZooKeeper's word for the operation.
func (o TransactionOperation) verb() string {
	switch o.typ {
	case callbacks.OperationCreate:
		return "create"
	case callbacks.OperationDelete:
		return "delete"
	case callbacks.OperationSetData:
		return "setData"
	}
	return "check"
}

// Type returns the kind of the operation.
func (o TransactionOperation) Type() callbacks.OperationType { return o.typ }

// Path returns the path as it was given.
func (o TransactionOperation) Path() string { return o.path }

// TransactionOp builds the operations of a transaction. Each operation is in the namespace of the client that has built
// it. In Java: TransactionOp.
type TransactionOp struct{ env *environment }

// Create builds a create.
func (t TransactionOp) Create() TransactionCreate { return TransactionCreate{env: t.env} }

// Delete builds a delete.
func (t TransactionOp) Delete() TransactionDelete { return TransactionDelete{env: t.env, version: -1} }

// SetData builds a setData.
func (t TransactionOp) SetData() TransactionSetData {
	return TransactionSetData{env: t.env, version: -1}
}

// Check builds a check of a node's existence and version.
func (t TransactionOp) Check() TransactionCheck { return TransactionCheck{env: t.env, version: -1} }

// Fence builds a check that all of the nodes exist, as one operation with one result. The transaction fails with lost
// if a node is gone, and with [ErrUncertain] if its answer was lost and it could take effect twice: see
// framework.Client.Fenced.
//
// It is a fence for nodes with names that no later holder uses again, as those of locks and elections. A fixed name is
// no fence: when the next holder has created its node under the same name, the node exists for the last one too. For a
// fixed name see [TransactionOp.FenceVersion] and framework.Client.Claim.
func (t TransactionOp) Fence(lost error, nodes ...string) TransactionOperation {
	return t.fence(lost, -1, nodes)
}

// FenceVersion builds a check that a node has a version, as an operation of a fence: the transaction fails with lost if
// the node is gone or has another version. It is for an epoch node: a node that stays, and whose data each holder sets
// once, in the transaction in which it begins to hold. The version of that write is its epoch, and the next holder's
// write ends it, as does any other write of the data. A holder that does not write the epoch node, of a program in Java
// for example, ends no epoch, and after a deletion the versions begin again: framework.Client.Claim also checks a node
// that ends with the session. The version -1, which the server takes for any, is [ErrBadArguments].
func (t TransactionOp) FenceVersion(lost error, node string, version int32) TransactionOperation {
	if version == -1 {
		c := &call{env: t.env, verb: "check"}
		return TransactionOperation{env: t.env, err: c.badArguments("a fence of version -1, which is any version")}
	}
	return t.fence(lost, version, []string{node})
}

func (t TransactionOp) fence(lost error, version int32, nodes []string) TransactionOperation {
	c := &call{env: t.env, verb: "check"}
	op := TransactionOperation{env: t.env, typ: callbacks.OperationCheck}
	if op.err = c.wrap(t.env.err); op.err != nil {
		return op
	}
	var err error
	if op.guard, err = newGuard(t.env, lost, version, nodes); err != nil {
		op.err = c.wrap(err)
		return op
	}
	op.path, op.request = nodes[0], op.guard.checks[0]
	return op
}

// transactionCall checks the arguments of an operation.
func transactionCall(env *environment, typ callbacks.OperationType, verb, path string, sequential bool) (
	*call, TransactionOperation,
) {
	c := &call{}
	op := TransactionOperation{env: env, typ: typ, path: path}
	op.err = c.init(env, callbacks.Transaction, verb, path, sequential)
	if op.err == nil {
		op.err = c.wrap(env.err)
	}
	return c, op
}

// TransactionCreate builds a create in a transaction; it is a value like [Create]. In Java: TransactionCreateBuilder.
type TransactionCreate struct {
	env       *environment
	mode      CreateMode
	ttl       time.Duration
	acl       []zk.ACL
	compress  option
	protected bool
}

// WithProtection works as in [Create], for the whole transaction: a retry looks first whether it has taken effect. Java
// has none in transactions.
//
// When the caller gives up a transaction whose outcome is open, because ctx ends or the retry policy gives up, the
// client removes the protected nodes in the background, each that was created with protection. All else stays if the
// transaction has taken effect: other creates, setData and deletes, which cannot be undone without the risk of undoing
// the work of another client. There are no results then, and framework.MayHaveTakenEffect is true of the error. So
// protect each create whose node must not stay, and look before a second try: a create without protection may find the
// node of the first.
func (c TransactionCreate) WithProtection() TransactionCreate { c.protected = true; return c }

// WithMode sets the kind of node; the default is [Persistent].
func (c TransactionCreate) WithMode(m CreateMode) TransactionCreate { c.mode = m; return c }

// WithTTL works as in [Create].
func (c TransactionCreate) WithTTL(ttl time.Duration) TransactionCreate { c.ttl = ttl; return c }

// WithACL works as in [Create].
func (c TransactionCreate) WithACL(acl ...zk.ACL) TransactionCreate { c.acl = clone(acl); return c }

// Compressed works as in [Create].
func (c TransactionCreate) Compressed() TransactionCreate { c.compress = on; return c }

// Uncompressed works as in [Create].
func (c TransactionCreate) Uncompressed() TransactionCreate { c.compress = off; return c }

// ForPath returns the operation; data is as for [Create.ForPath]. Its errors are returned when the transaction is
// executed.
func (c TransactionCreate) ForPath(path string, data []byte) TransactionOperation {
	k, op := transactionCall(c.env, callbacks.OperationCreate, "create", path, c.mode.IsSequential())
	if op.err == nil {
		op.err = k.checkMode(c.mode, c.ttl)
	}
	if op.err == nil {
		data, op.err = c.env.data(path, clone(data), c.compress)
		op.err = k.wrap(op.err)
	}
	var answers acls
	if op.err == nil && len(c.acl) == 0 {
		answers, op.err = c.env.resolve(nil, k.full)
		op.err = k.wrap(op.err)
	}
	op.request = c.mode.request(k.full, data, c.env.aclOf(k.full, c.acl, answers), c.ttl)
	op.protected, op.mode = c.protected, c.mode
	return op
}

// TransactionDelete builds a delete in a transaction; it is a value like [Create]. In Java: TransactionDeleteBuilder.
type TransactionDelete struct {
	env     *environment
	version int32
}

// WithVersion works as in [Delete].
func (d TransactionDelete) WithVersion(version int32) TransactionDelete {
	d.version = version
	return d
}

// ForPath returns the operation.
func (d TransactionDelete) ForPath(path string) TransactionOperation {
	k, op := transactionCall(d.env, callbacks.OperationDelete, "delete", path, false)
	op.request = jute.Request{Op: jute.OpDelete, Path: k.full, Version: d.version}
	return op
}

// TransactionSetData builds a setData in a transaction; it is a value like [Create]. In Java:
// TransactionSetDataBuilder.
type TransactionSetData struct {
	env      *environment
	version  int32
	compress option
}

// WithVersion works as in [SetData].
func (s TransactionSetData) WithVersion(version int32) TransactionSetData {
	s.version = version
	return s
}

// Compressed works as in [SetData].
func (s TransactionSetData) Compressed() TransactionSetData { s.compress = on; return s }

// Uncompressed works as in [SetData].
func (s TransactionSetData) Uncompressed() TransactionSetData { s.compress = off; return s }

// ForPath returns the operation; data is as for [SetData.ForPath].
func (s TransactionSetData) ForPath(path string, data []byte) TransactionOperation {
	k, op := transactionCall(s.env, callbacks.OperationSetData, "setData", path, false)
	if op.err == nil {
		data, op.err = s.env.data(path, clone(data), s.compress)
		op.err = k.wrap(op.err)
	}
	op.request = jute.Request{Op: jute.OpSetData, Path: k.full, Data: data, Version: s.version}
	return op
}

// TransactionCheck builds a check in a transaction; it is a value like [Create]. In Java: TransactionCheckBuilder.
type TransactionCheck struct {
	env     *environment
	version int32
}

// WithVersion checks that the node has this version; -1, the default, checks only that it exists.
func (c TransactionCheck) WithVersion(version int32) TransactionCheck { c.version = version; return c }

// ForPath returns the operation.
func (c TransactionCheck) ForPath(path string) TransactionOperation {
	k, op := transactionCall(c.env, callbacks.OperationCheck, "check", path, false)
	op.request = jute.Request{Op: jute.OpCheck, Path: k.full, Version: c.version}
	return op
}
