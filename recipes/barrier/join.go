package barrier

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// join enters a round that began before our node was created, if any member is in. If none is, ready was left by a
// crash: the oldest waiting member deletes it, and the others wait for that.
func (e *entry) join(ctx context.Context, s *snapshot) (in bool, err error) {
	nodes, err := e.read(ctx, s)
	switch {
	case waitqueue.IsPassing(err): // checked first: err joins the errors of several reads
		return false, e.again(ctx, err)
	case errors.Is(err, zk.ErrNoNode): // look again
		return false, nil
	case err != nil:
		return false, err
	}
	oldest := nodes[0]
	for _, n := range nodes {
		if n.stat.Czxid > s.parent.Pzxid { // the node was created after the list: look again
			return false, nil
		}
		if isIn(&n.stat, s.ready.Czxid) {
			if n.name == e.name { // we have signed up, and the reply was lost
				return true, nil
			}
			return e.signUp(ctx, s, n.name)
		}
		if n.stat.Czxid < oldest.stat.Czxid {
			oldest = n
		}
	}
	if oldest.name == e.name {
		return false, e.clear(ctx, s)
	}
	return e.awaitOldest(ctx, s, oldest.name)
}

// memberNode is the node of a member.
type memberNode struct {
	name string
	stat zk.Stat
}

// signedUp is the version of the node of a member that has joined late.
const signedUp = 1

// isIn reports whether the member of a node is in the round that began with the transaction opened: the node is older,
// or the member has signed up.
func isIn(node *zk.Stat, opened int64) bool { return node.Czxid < opened || node.Version >= signedUp }

// read reads the nodes of all listed members, in the flight of the list.
func (e *entry) read(ctx context.Context, s *snapshot) ([]memberNode, error) {
	names := membersAmong(s.children)
	nodes, reads := make([]memberNode, len(names)), make([]builders.Future[[]byte], len(names))
	for i, name := range names {
		nodes[i].name = name
		get := e.client.GetData().Undecompressed().StoringStatIn(&nodes[i].stat)
		reads[i] = get.Submit(s.flight, zkpath.Join(e.path, name))
	}
	errs := make([]error, len(names))
	for i, read := range reads {
		_, errs[i] = read.Wait(ctx)
	}
	return nodes, errors.Join(errs...)
}

// signUp enters in one transaction, if another member is still in: the round may have been deserted meanwhile. It
// changes the version of ready, so that no member ends the round without having seen us. And it creates our node again,
// with the version signedUp.
func (e *entry) signUp(ctx context.Context, s *snapshot, other string) (in bool, err error) {
	op := e.client.TransactionOp()
	_, err = e.client.Transaction().ForOperations(s.flight,
		op.Check().ForPath(zkpath.Join(e.path, other)),
		op.SetData().ForPath(e.ready(), nil),
		op.Delete().ForPath(e.own()),
		op.Create().WithMode(builders.Ephemeral).ForPath(e.own(), nil),
		op.SetData().ForPath(e.own(), nil))
	if errors.Is(err, zk.ErrNoNode) { // look again
		return false, nil
	}
	return err == nil, e.again(ctx, err)
}

// clear deletes the ready of the snapshot, if no member has signed up since. Only the oldest member clears it, and our
// node is the oldest.
func (e *entry) clear(ctx context.Context, s *snapshot) error {
	op := e.client.TransactionOp()
	_, err := e.client.Transaction().ForOperations(s.flight,
		op.Check().ForPath(e.own()), op.Delete().WithVersion(s.ready.Version).ForPath(e.ready()))
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) { // look again
		return nil
	}
	return e.again(ctx, err)
}

// awaitOldest waits until the oldest member has deleted ready, or is gone.
func (e *entry) awaitOldest(ctx context.Context, s *snapshot, name string) (in bool, err error) {
	w := e.signal.watch(s.flight, zkpath.Join(e.path, name))
	defer w.remove(ctx)
	there, err := w.exists(ctx)
	switch {
	case err != nil:
		return false, e.again(ctx, err)
	case !there || w.stat.Czxid > s.parent.Pzxid: // look again
		return false, nil
	}
	return e.awaitReady(ctx)
}
