package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

const (
	// requeueWindow is how many letters are under way.
	requeueWindow = 50
	// maxLosses is how many connections in a row may be lost with a letter under way. A server closes the connection for
	// a request that is too large for it.
	maxLosses = 8
)

// The states of a letter in the output.
const (
	letterRequeued  = "requeued"
	letterPlanned   = "dry-run"
	letterHeld      = "held"
	letterGone      = "gone"
	letterUncertain = "uncertain"
)

// requeuedLetter is a line of the output, as JSON and YAML have it.
type requeuedLetter struct {
	Path  string `json:"path"` // among the dead letters
	State string `json:"state"`
	To    string `json:"to,omitempty"` // the node in the queue
}

// requeue is what the subcommand is to do.
type requeue struct {
	dead, queue, locks string
	names              []string
	most               int
	all, dry, anyKind  bool
}

func (a *app) queueRequeue() *cobra.Command {
	var r requeue
	cmd := &cobra.Command{
		Use:   "requeue DEAD PATH (NODE... | -n COUNT | --all)",
		Short: "Put dead letters back into their queue",
		Long: `Requeue moves dead letters from the path DEAD into the queue PATH, in their order. Each moves in a transaction:
whatever fails, it is in one of the two and not in both, and the command may be run again. A letter keeps its bytes, its
ACL, and its priority, due time or id; in the queue it comes behind the items that have the same. Both paths must exist.
Requeue puts letters into a queue beyond its MaxItems, too. The number of deliveries starts from 0 again.
It moves nothing, with code 77, if a letter is of another kind than what is in the queue: the consumers of a priority
queue, for example, look for other names than those of a simple queue. A path without nodes does not say of which kind
it is. One with nodes and none of a queue, or with ephemeral ones, as the lock path of a queue has, is no queue, which
is code 77 too.

If the dead letters have consumers with a lock path, name it with --locks: a letter that is being consumed stays then.
Without --locks such a letter moves, and is consumed twice. NODE is a name below DEAD, or a path. The states are:
  requeued   it is in the queue, in the node of TO
  held       a consumer has it: it stays, and the exit code is 77
  gone       somebody else has taken it, or it was requeued before
  uncertain  it is gone, but the answer was lost: it was requeued, or taken by somebody else
  dry-run    it would be requeued`,
		Example: `  curator queue requeue /jobs-dead /jobs -n 1
  curator queue requeue /jobs-dead /jobs --all --dry-run`,
		Args: usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.dead, r.queue, r.names = args[0], args[1], args[2:]
			if err := r.check(cmd.Flags().Changed("count")); err != nil {
				return usage(err)
			}
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				return a.requeue(ctx, client, r)
			})
		},
		ValidArgsFunction: a.completePath,
	}
	fs := cmd.Flags()
	fs.IntVarP(&r.most, "count", "n", 0, "requeue the first letters, so many at most")
	fs.BoolVar(&r.all, "all", false, "requeue all letters")
	fs.StringVar(&r.locks, "locks", "", "the lock path of the consumers of the dead letters")
	fs.BoolVar(&r.anyKind, "any-kind", false, "move letters into a queue of another kind, or what is no queue, too")
	fs.BoolVar(&r.dry, "dry-run", false, "print what would be requeued, and change nothing")
	return cmd
}

// check checks the arguments, and makes names of the paths of nodes.
func (r *requeue) check(counted bool) error {
	chosen := 0
	for _, is := range []bool{len(r.names) > 0, counted, r.all} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return errors.New("say which letters: nodes, -n or --all, one of them")
	case counted && r.most < 1:
		return errors.New("-n: must be positive")
	}
	paths := r.paths()
	for i, path := range paths {
		if err := zkpath.Validate(path, false); err != nil {
			return err
		}
		if slices.Contains(paths[:i], path) {
			return fmt.Errorf("%s: has two uses", path)
		}
	}
	for i, name := range r.names {
		if strings.HasPrefix(name, "/") {
			parent, last := zkpath.PathAndNode(name)
			if parent != r.dead {
				return fmt.Errorf("%s: is not below %s", name, r.dead)
			}
			r.names[i] = last
		}
		if _, ok := recognize.ItemPrefix(r.names[i]); !ok {
			return fmt.Errorf("%s: is not the name of an item of a queue", name)
		}
	}
	return nil
}

// paths returns the paths that must exist.
func (r *requeue) paths() []string {
	paths := []string{r.dead, r.queue}
	if r.locks != "" {
		paths = append(paths, r.locks)
	}
	return paths
}

func (a *app) requeue(ctx context.Context, client *framework.Client, r requeue) error {
	// A path that was mistyped must not become a queue.
	for _, path := range r.paths() {
		stat, err := client.CheckExists().ForPath(ctx, path)
		if err == nil && stat == nil {
			err = fmt.Errorf("%s: %w", path, zk.ErrNoNode)
		}
		if err != nil {
			return err
		}
	}
	letters, err := r.letters(ctx, client)
	if err != nil {
		return err
	}
	if err := r.checkKinds(ctx, client, letters); err != nil {
		return err
	}
	m := &mover{requeue: r, client: client, out: output.New(a.Stdout, a.format, "LETTER", "STATE", "TO")}
	moved, stop := func(int) {}, func() {}
	if a.format == output.Table { // which appears at its end
		p := a.progress(func(done int64) string {
			return fmt.Sprintf("done with %d of %d letters of %s", done, len(letters), r.dead)
		}, a.isTerminalError())
		moved, stop = p.add, p.stop
	}
	for some := range slices.Chunk(letters, requeueWindow) {
		if err = m.move(ctx, some); err != nil {
			break
		}
		moved(len(some))
	}
	stop()
	err = errors.Join(err, m.out.Close())
	if err == nil && m.held > 0 {
		return exit(CodeRefused, fmt.Errorf("%d of the letters are held by consumers", m.held))
	}
	return err
}

// kinds returns the kinds of the items in the queue: none if it is empty. It fails if the path has nodes and is no
// queue. The items of a queue are not ephemeral, and the locks of its consumers, which have the same names, are.
func (r *requeue) kinds(ctx context.Context, client *framework.Client) ([]recognize.Recipe, error) {
	t, err := tree.Read(ctx, client, r.queue, tree.Options{Depth: 1})
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(t[r.queue].Children, func(name string) bool {
		child := zkpath.Join(r.queue, name) // one that leads to the dead letters or their locks says nothing
		return slices.ContainsFunc(r.paths(), func(p string) bool { return p == child || strings.HasPrefix(p, child+"/") })
	})
	for _, name := range names {
		if n := t[zkpath.Join(r.queue, name)]; n.Stat != nil && n.Stat.EphemeralOwner != 0 {
			return nil, exit(CodeRefused, fmt.Errorf("%s is no queue: %s is ephemeral; --any-kind moves letters there "+
				"nevertheless", r.queue, name))
		}
	}
	there := recognize.Kinds(names)
	if len(there) == 0 && len(names) > 0 {
		return nil, exit(CodeRefused, fmt.Errorf("%s %w; --any-kind moves letters there nevertheless", r.queue, errNoQueue))
	}
	return there, nil
}

// checkKinds fails if a letter is of another kind than the items of the queue, or the queue is none.
func (r *requeue) checkKinds(ctx context.Context, client *framework.Client, letters []*letter) error {
	if r.anyKind || len(letters) == 0 {
		return nil
	}
	there, err := r.kinds(ctx, client)
	if err != nil {
		return err
	}
	names, err := client.GetChildren().ForPath(ctx, r.dead)
	if err != nil {
		return err
	}
	all := recognize.Kinds(names)
	// both reports whether a kind is in the queue, and among the letters that are not to be moved too.
	both := func(k recognize.Recipe) bool { return slices.Contains(there, k) && slices.Contains(all, k) }
	for _, l := range letters {
		for _, k := range recognize.Kinds([]string{l.name}) {
			fits := len(there) == 0 || slices.Contains(there, k)
			switch k {
			case recognize.Queue: // Java has put it back, without its field
				fits = fits || both(recognize.PriorityQueue) || both(recognize.DelayQueue)
			case recognize.DelayQueue: // or its id looks like a due time
				fits = fits || both(recognize.IDQueue)
			}
			if !fits {
				return exit(CodeRefused, fmt.Errorf("%s is of a %s, and %s is a %s; --any-kind moves it nevertheless",
					zkpath.Join(r.dead, l.name), k, r.queue, there[0]))
			}
		}
	}
	return nil
}

// letter is a dead letter on its way.
type letter struct {
	name, prefix string
	stat         *zk.Stat // nil if it is gone
	data         []byte
	acl          []zk.ACL
	sent         builders.Future[[]callbacks.OperationResult]
	maybeMoved   bool // the answer to a transaction was lost
	held         bool // a dry run has found its lock
}

// letters returns the letters that were chosen, in the order of the queue.
func (r *requeue) letters(ctx context.Context, client *framework.Client) ([]*letter, error) {
	found, t, err := lettersOf(ctx, client, r.dead, false)
	if err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, name := range r.names {
		missing[name] = true
	}
	var letters []*letter
	for _, p := range found {
		if len(r.names) > 0 && !missing[p.Node] || r.most > 0 && len(letters) == r.most {
			continue
		}
		delete(missing, p.Node)
		prefix, _ := recognize.ItemPrefix(p.Node) // it was recognized by its name
		letters = append(letters, &letter{name: p.Node, prefix: prefix, stat: t[zkpath.Join(r.dead, p.Node)].Stat})
	}
	for _, name := range r.names {
		if missing[name] {
			delete(missing, name)
			letters = append(letters, &letter{name: name})
		}
	}
	return letters, nil
}

// mover moves letters.
type mover struct {
	requeue
	client *framework.Client
	out    *output.Writer
	held   int
}

// move moves some letters, which are in flight together. They are sent on one connection: in the queue they have their
// order.
func (m *mover) move(ctx context.Context, letters []*letter) error {
	byPath := map[string]*letter{}
	var paths []string
	for _, l := range letters {
		if l.stat != nil {
			path := zkpath.Join(m.dead, l.name)
			byPath[path], paths = l, append(paths, path)
		}
	}
	prepare := m.read
	if m.dry {
		prepare = m.look
	}
	err := tree.Each(ctx, paths, func(ctx context.Context, path string) error { return prepare(ctx, byPath[path]) })
	if err != nil {
		return err
	}
	flight := builders.Pipelined(ctx)
	for _, l := range letters {
		if l.stat != nil && !m.dry {
			l.sent = m.submit(flight, l)
		}
	}
	for _, l := range letters {
		if err != nil { // those behind an error are under way too, but get no second try
			if results, failure := l.answer(ctx); failure == nil {
				m.print(l, letterRequeued, m.created(results))
			}
			continue
		}
		err = m.finish(ctx, l)
	}
	return err
}

// look is read for a dry run.
func (m *mover) look(ctx context.Context, l *letter) error {
	if m.locks == "" {
		return nil
	}
	lock, err := m.client.CheckExists().ForPath(ctx, zkpath.Join(m.locks, l.name))
	l.held = lock != nil
	return err
}

// read reads what is moved with a letter.
func (m *mover) read(ctx context.Context, l *letter) error {
	path, listed := zkpath.Join(m.dead, l.name), l.stat
	l.stat = nil
	var stat zk.Stat
	data, err := m.client.GetData().StoringStatIn(&stat).ForPath(ctx, path)
	if err == nil {
		l.acl, err = m.client.GetACL().ForPath(ctx, path)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return err
	case stat.Czxid != listed.Czxid: // another letter: the path was deleted and created again
		return nil
	case slices.ContainsFunc(l.acl, isHidden):
		return exit(CodeRefused, fmt.Errorf("%s: its ACL is hidden without the permission a", path))
	}
	if l.stat = &stat; data == nil {
		data = []byte{} // nil would be the default data of the client
	}
	l.data = data
	return nil
}

// isHidden reports whether the servers have hidden the digest of an entry, as they do without the permission a.
func isHidden(e zk.ACL) bool { return e.Scheme == "digest" && strings.HasSuffix(e.ID, ":x") }

// submit sends the transaction that moves a letter. It creates and deletes the lock, which fails while a consumer holds
// it.
func (m *mover) submit(flight context.Context, l *letter) builders.Future[[]callbacks.OperationResult] {
	op := m.client.TransactionOp()
	ops := []builders.TransactionOperation{
		op.Delete().WithVersion(l.stat.Version).ForPath(zkpath.Join(m.dead, l.name)),
		op.Create().WithMode(builders.PersistentSequential).WithACL(l.acl...).
			ForPath(zkpath.Join(m.queue, l.prefix), l.data),
	}
	if m.locks != "" {
		lock := zkpath.Join(m.locks, l.name)
		ops = slices.Concat(
			[]builders.TransactionOperation{op.Create().WithMode(builders.Ephemeral).ForPath(lock, nil)},
			ops,
			[]builders.TransactionOperation{op.Delete().ForPath(lock)},
		)
	}
	return m.client.Transaction().Submit(flight, ops...)
}

// answer waits for the answer to the transaction of a letter.
func (l *letter) answer(ctx context.Context) ([]callbacks.OperationResult, error) {
	if l.stat == nil {
		return nil, zk.ErrNoNode
	}
	return l.sent.Wait(ctx)
}

// finish prints what has become of a letter. It sends the transaction again as long as it is unknown whether it was
// done: no two of them can be, for each deletes the letter.
func (m *mover) finish(ctx context.Context, l *letter) error {
	if m.dry && l.stat != nil {
		state := letterPlanned
		if l.held {
			state = letterHeld
		}
		m.print(l, state, "")
		return m.out.Err()
	}
	for losses := 0; ; {
		results, err := l.answer(ctx)
		switch path, cause := failed(results); {
		case l.stat == nil, path == zkpath.Join(m.dead, l.name) && errors.Is(cause, zk.ErrNoNode):
			m.print(l, letterGone, "")
			return m.out.Err()
		case err == nil:
			m.print(l, letterRequeued, m.created(results))
			return m.out.Err()
		case m.locks != "" && path == zkpath.Join(m.locks, l.name) && errors.Is(cause, zk.ErrNodeExists):
			m.print(l, letterHeld, "")
			return m.out.Err()
		case path == zkpath.Join(m.dead, l.name) && errors.Is(cause, zk.ErrBadVersion): // somebody has changed it
		case ctx.Err() != nil, !waitqueue.IsPassing(err):
			return err
		case losses == maxLosses:
			return fmt.Errorf("%s: lost %d times, with its %d bytes: compare jute.maxbuffer of the servers: %w",
				zkpath.Join(m.dead, l.name), losses, len(l.data), err)
		default:
			losses++
			l.maybeMoved = l.maybeMoved || waitqueue.IsOutage(err) && !errors.Is(err, framework.ErrNotSent)
		}
		if err := m.read(ctx, l); err != nil { // by the retry policy: it waits for the connection
			return err
		}
		if l.stat != nil {
			l.sent = m.submit(builders.Pipelined(ctx), l)
		}
	}
}

// failed returns the path and the error of the operation because of which a transaction had no effect.
func failed(results []callbacks.OperationResult) (path string, cause error) {
	for _, r := range results {
		if r.Err != nil { // the operations behind it have errors too
			return r.ForPath, r.Err
		}
	}
	return "", nil
}

// created returns the node that a transaction has created in the queue.
func (m *mover) created(results []callbacks.OperationResult) string {
	for _, r := range results {
		if r.Type == callbacks.OperationCreate {
			if parent, _ := zkpath.PathAndNode(r.ResultPath); parent == m.queue { // the locks may be below the queue
				return r.ResultPath
			}
		}
	}
	return ""
}

func (m *mover) print(l *letter, state, to string) {
	switch {
	case state == letterHeld:
		m.held++
	case state == letterGone && l.maybeMoved:
		state = letterUncertain
	}
	path := zkpath.Join(m.dead, l.name)
	m.out.Row(requeuedLetter{path, state, to}, printable(path), state, dash(printable(to)))
}
