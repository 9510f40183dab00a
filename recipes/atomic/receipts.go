package atomic

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// errReceipt means that the node of the receipts was gone or changed, so that the transaction was not applied.
var errReceipt = errors.New("atomic: receipt is gone")

// receipts is an ephemeral node that each transaction writes too. Its version shows whether the last one was applied.
type receipts struct {
	client *framework.Client
	path   string
	sent   string // the node in the last transaction; only the goroutine in run uses it

	mu      sync.Mutex
	node    string // "" if there is none
	version int32
}

// own returns the node and its version, and creates it if there is none.
func (r *receipts) own(ctx context.Context) (node string, version int32, err error) {
	r.mu.Lock()
	node, version = r.node, r.version
	r.mu.Unlock()
	if node != "" {
		return node, version, nil
	}
	node = zkpath.Join(r.path, zkpath.NewProtectionID())
	_, err = r.client.Create().CreatingParentContainersIfNeeded().WithMode(builders.Ephemeral).
		ForPath(hook.OutOfFence(ctx), node, []byte{})
	if err != nil && !errors.Is(err, zk.ErrNodeExists) { // only a lost attempt of this create has the name
		if !isAnswer(err) { // the node may be there
			r.delete(ctx, node)
		}
		return "", 0, fmt.Errorf("receipt: %w", err)
	}
	r.note(node, 0)
	return node, 0, nil
}

func (r *receipts) note(node string, version int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node, r.version = node, version
}

// send writes post over base, in one transaction with the receipt.
func (r *receipts) send(ctx context.Context, path string, base snapshot, post []byte) (stat zk.Stat, err error) {
	node, version, err := r.own(ctx)
	if err != nil {
		return stat, notSentError{err}
	}
	op := r.client.TransactionOp()
	write := op.SetData().WithVersion(base.version).ForPath(path, post)
	if !base.exists {
		if err := r.client.CreateContainers(ctx, zkpath.Parent(path)); err != nil {
			return stat, notSentError{err}
		}
		write = op.Create().ForPath(path, post)
	}
	receipt := op.SetData().WithVersion(version).ForPath(node, []byte{})
	r.sent = node
	results, err := r.client.Transaction().ForOperations(ctx, write, receipt)
	switch {
	case err == nil:
		r.note(node, version+1)
		if s := results[0].Stat; s != nil {
			stat = *s
		}
	case len(results) == 2 && (errors.Is(results[1].Err, zk.ErrNoNode) || errors.Is(results[1].Err, zk.ErrBadVersion)):
		// The value was as it should be, and the server has looked at it first: no attempt was applied.
		r.remove(ctx)
		err = errReceipt
	}
	return stat, err
}

// find reports whether the last transaction was applied. It returns uncertain if the node is gone.
func (r *receipts) find(ctx context.Context) (verdict, error) {
	r.mu.Lock()
	node, version := r.node, r.version
	r.mu.Unlock()
	if node == "" {
		return uncertain, nil
	}
	stat, err := r.client.CheckExists().ForPath(ctx, node)
	switch {
	case err != nil:
		return uncertain, err
	case stat == nil:
		r.note("", 0)
		return uncertain, nil
	case stat.Version == version+1:
		r.note(node, stat.Version)
		return applied, nil
	case stat.Version == version:
		return refused, nil
	}
	r.remove(ctx)
	return uncertain, nil
}

// remove deletes the node in the background.
func (r *receipts) remove(ctx context.Context) {
	r.mu.Lock()
	node := r.node
	r.node = ""
	r.mu.Unlock()
	if node != "" {
		r.delete(ctx, node)
	}
}

// delete deletes a node in the background, also after the end of ctx.
func (r *receipts) delete(ctx context.Context, node string) {
	ctx = hook.OutOfFence(context.WithoutCancel(ctx))
	_ = r.client.Delete().Guaranteed().Quietly().InBackground(waitqueue.Ignore).ForPath(ctx, node)
}

// notSentError is the error of a preparation: the write itself was not sent.
type notSentError struct{ error }

func (n notSentError) Unwrap() error { return n.error }
