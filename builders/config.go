package builders

import (
	"context"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// ConfigNode is the node with the configuration of the ensemble. It is outside every chroot and namespace.
const ConfigNode = "/zookeeper/config"

// GetConfig builds a read of the ensemble's configuration; it is a value like [Create]. In Java: GetConfigBuilder.
type GetConfig struct {
	env     *environment
	stat    *zk.Stat
	watcher *callbacks.Watcher
}

// StoringStatIn stores the Stat of the node in stat before ForEnsemble returns, or in the background before
// the callback is called.
func (g GetConfig) StoringStatIn(stat *zk.Stat) GetConfig { g.stat = stat; return g }

// UsingWatcher sets a watch of the configuration. The path of its event is [ConfigNode], also in a chroot that contains
// this node.
func (g GetConfig) UsingWatcher(w *callbacks.Watcher) GetConfig { g.watcher = w; return g }

// Watched sets a watch whose event goes to the listeners of the client.
func (g GetConfig) Watched() GetConfig { return g.UsingWatcher(g.env.DefaultWatcher) }

// InBackground makes ForEnsemble asynchronous: it returns once the operation is queued, and cb receives the result, or
// the client's listeners if cb is nil.
func (g GetConfig) InBackground(cb callbacks.BackgroundCallback) BackgroundEnsemble {
	return BackgroundEnsemble{background{cb: cb}, g.start}
}

// ForEnsemble returns the configuration as text: lines "server.<id>=<addresses>" and "version=<hex>"; empty on a
// server that stands alone.
func (g GetConfig) ForEnsemble(ctx context.Context) ([]byte, error) {
	o := g.operation()
	if err := o.foreground(ctx, o); err != nil {
		return nil, err
	}
	o.store()
	return o.op.Reply().Data, nil
}

func (g GetConfig) start(ctx context.Context, b background) error {
	o := g.operation()
	return o.background(ctx, o, b)
}

func (g GetConfig) operation() *configOp {
	o := &configOp{watcher: g.watcher, into: g.stat}
	o.env, o.typ, o.verb, o.given, o.full = g.env, callbacks.GetConfig, "getConfig", ConfigNode, ConfigNode
	o.op.SetAbsolute()
	o.request = jute.Request{Op: jute.OpGetData, Path: ConfigNode}
	return o
}

// Reconfig builds a change of the ensemble's members; it is a value like [Create]. Use either Joining and Leaving, or
// WithNewMembers, which replaces all members. In Java: ReconfigBuilder.
type Reconfig struct {
	env              *environment
	joining, leaving []string
	members          []string
	from             int64
	stat             *zk.Stat
}

// Joining adds servers, each as "server.<id>=<host>:<quorum port>:<election port>;<client port>".
func (r Reconfig) Joining(servers ...string) Reconfig { r.joining = clone(servers); return r }

// Leaving removes the servers with these ids.
func (r Reconfig) Leaving(ids ...string) Reconfig { r.leaving = clone(ids); return r }

// WithNewMembers replaces all servers by these.
func (r Reconfig) WithNewMembers(servers ...string) Reconfig { r.members = clone(servers); return r }

// FromConfig sets the expected version of the configuration. ForEnsemble fails with zk.ErrBadVersion on another one.
func (r Reconfig) FromConfig(version int64) Reconfig { r.from = version; return r }

// StoringStatIn stores the Stat of the configuration node in stat before ForEnsemble returns, or in the background
// before the callback is called.
func (r Reconfig) StoringStatIn(stat *zk.Stat) Reconfig { r.stat = stat; return r }

// InBackground makes ForEnsemble asynchronous: it returns once the operation is queued, and cb receives the result, or
// the client's listeners if cb is nil.
func (r Reconfig) InBackground(cb callbacks.BackgroundCallback) BackgroundEnsemble {
	return BackgroundEnsemble{background{cb: cb}, r.start}
}

// ForEnsemble makes the change and returns the new configuration. Errors: zk.ErrReconfigDisabled, zk.ErrBadVersion,
// zk.ErrNoAuth (it needs the right to write [ConfigNode]), a quorum that cannot be formed, framework.ErrUnimplemented
// if the client is fenced, and, when the retry policy has given up, connection loss.
func (r Reconfig) ForEnsemble(ctx context.Context) ([]byte, error) {
	o, err := r.operation()
	if err != nil {
		return nil, err
	}
	if err := o.foreground(ctx, o); err != nil {
		return nil, err
	}
	o.store()
	return o.op.Reply().Data, nil
}

func (r Reconfig) start(ctx context.Context, b background) error {
	o, err := r.operation()
	if err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

func (r Reconfig) operation() (*configOp, error) {
	o := &configOp{into: r.stat}
	o.env, o.typ, o.verb, o.given, o.full = r.env, callbacks.Reconfig, "reconfig", ConfigNode, ConfigNode
	o.op.SetAbsolute()
	switch incremental := len(r.joining)+len(r.leaving) > 0; {
	case incremental && len(r.members) > 0:
		return nil, o.badArguments("joining and leaving exclude new members")
	case !incremental && len(r.members) == 0:
		return nil, o.badArguments("nothing to change")
	}
	if err := o.unfenceable(); err != nil {
		return nil, err
	}
	o.request = jute.Request{Op: jute.OpReconfig, Reconfig: &jute.Reconfig{
		Joining:    strings.Join(r.joining, ","),
		Leaving:    strings.Join(r.leaving, ","),
		NewMembers: strings.Join(r.members, ","),
		ConfigID:   r.from,
	}}
	return o, nil
}

// configOp is the protocol of GetConfig and Reconfig: one request.
type configOp struct {
	call
	request jute.Request
	watcher *callbacks.Watcher
	into    *zk.Stat
}

// Begin sends the request.
func (o *configOp) Begin() {
	o.sendWatching(o.request, o.watcher, func() {
		if o.op.Err() == nil {
			o.watched(o.watcher, false)
		}
		o.op.Finish(o.op.Err())
	})
}

func (o *configOp) store() {
	if o.into != nil {
		*o.into = o.op.Reply().Stat
	}
}

// Deliver hands the result to the callback.
func (o *configOp) Deliver() {
	var ev callbacks.Event
	if o.op.Result() == nil {
		o.store()
		ev.Data, ev.Stat = o.op.Reply().Data, &o.op.Reply().Stat
	}
	o.deliver(ev)
}
