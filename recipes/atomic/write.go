package atomic

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/waitqueue"
)

// snapshot is the node at one moment. The zero value is a node that does not exist.
type snapshot struct {
	exists   bool
	data     []byte // nil if the node does not exist
	version  int32
	czxid    int64
	epoch    int64 // of the watch, before the read
	isSynced bool  // the server had caught up with the leader
}

// isWrapped reports whether the node has the version that stands for any version, so that a write overwrites anything.
func (s snapshot) isWrapped() bool { return s.exists && s.version == -1 }

func (s snapshot) isSame(other snapshot) bool {
	return s.exists == other.exists && s.version == other.version && s.czxid == other.czxid
}

// verdict is what has become of a write.
type verdict int

const (
	failed    verdict = iota // not applied, with an error that ends the calls
	applied                  // once
	refused                  // not applied: another client was faster
	uncertain                // perhaps applied
	undecided                // not applied so far: the node is as it was
)

// errVersion is the error of a change of a node whose version is the one that stands for any version.
var errVersion = errors.New("atomic: the version of the node has wrapped around to -1, which cannot be compared; " +
	"ForceSet writes over it")

// read reads the node. With sync it sees all writes that were answered before, whoever made them.
func (e *engine) read(ctx context.Context, sync bool) (snapshot, error) {
	epoch := e.watch.epoch.Load()
	if sync {
		if err := e.client.Sync().ForPath(ctx, e.path); err != nil {
			return snapshot{}, err
		}
	}
	awaitWatch := func() {}
	if e.isUsed { // a value that is used once leaves no watch
		awaitWatch = e.watch.submit(ctx)
	}
	var stat zk.Stat
	data, err := e.client.GetData().StoringStatIn(&stat).ForPath(ctx, e.path)
	awaitWatch()
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return snapshot{isSynced: sync}, nil
	case err != nil:
		return snapshot{}, err
	}
	if data == nil {
		data = []byte{}
	}
	return snapshot{
		exists: true, data: data, version: stat.Version, czxid: stat.Czxid, epoch: epoch, isSynced: sync,
	}, nil
}

// settle writes post over base, which must still be there, and finds out what has become of that.
//
// The client may send the write again after a lost answer. Its version makes that safe: at most one of the attempts is
// applied, and a success means that it is. Only a refusal of a later attempt leaves open what an earlier one has done.
func (e *engine) settle(ctx context.Context, base snapshot, post []byte) (v verdict, next snapshot, err error) {
	isLost, receipt := false, ""
	defer func() {
		if e.receipts != nil && (v == uncertain || v == failed && (isLost || !isAnswer(err))) {
			// It may have this write, and would say of the next one that it is applied.
			e.receipts.remove(ctx)
		}
	}()
	for {
		next, err = e.send(ctx, base, post)
		if err == nil {
			return applied, next, nil
		}
		switch {
		case errors.Is(err, errReceipt):
			continue // with a new receipt
		case !isLost && isAnswer(err) && isRefusal(err):
			return refused, snapshot{}, err
		case !isLost && isAnswer(err), ctx.Err() != nil: // or nobody waits
			return failed, snapshot{}, err
		}
		if !isLost && e.receipts != nil {
			receipt = e.receipts.sent
		}
		isLost = true
		v, findErr := e.findOut(ctx, base, post, receipt)
		switch {
		case v == undecided && waitqueue.IsPassing(err): // of a busy server too, for longer than the client retries
			_ = waitqueue.Pause(ctx, waitqueue.OutagePause)
			continue
		case v == undecided:
			v = uncertain
		case findErr != nil:
			err = findErr
		case isRefusal(err):
			err = nil
		}
		return v, snapshot{}, err
	}
}

// isAnswer reports whether err means that no attempt of the write was applied.
func isAnswer(err error) bool {
	if _, isPrepared := err.(notSentError); isPrepared || errors.Is(err, framework.ErrNotSent) { //nolint:errorlint // bare
		return true
	}
	var op *builders.OpError
	if !errors.As(err, &op) || op.Attempts == 0 {
		return true // it was never sent
	}
	isOpen := waitqueue.IsOutage(err) || errors.Is(err, framework.ErrClosed) || errors.Is(err, context.Canceled)
	return op.Attempts == 1 && !isOpen
}

// isRefusal reports whether err means that the node is not as it was.
func isRefusal(err error) bool {
	if _, isPrepared := err.(notSentError); isPrepared { //nolint:errorlint // send returns it as it is
		return false
	}
	if errors.Is(err, framework.ErrNoChroot) { // no later read finds another node
		return false
	}
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists)
}

// send writes post over base, and returns the node after that. If that is another node of the same version, made since
// base was read, the event of the end of base has come before the answer: the watch does not cover the result.
func (e *engine) send(ctx context.Context, base snapshot, post []byte) (snapshot, error) {
	next := snapshot{exists: true, data: post, epoch: base.epoch}
	var stat zk.Stat
	var err error
	switch {
	case e.receipts != nil:
		stat, err = e.receipts.send(ctx, e.path, base, post)
	case base.exists:
		var set *zk.Stat
		if set, err = e.client.SetData().WithVersion(base.version).ForPath(ctx, e.path, post); err == nil {
			stat = *set
		}
	default:
		_, err = e.client.Create().CreatingParentContainersIfNeeded().StoringStatIn(&stat).ForPath(ctx, e.path, post)
	}
	next.version, next.czxid = stat.Version, stat.Czxid
	return next, err
}

// findOut finds out what has become of a write whose answer was lost. A version that has moved on proves that the write
// is not applied any more. What the node has become shows whether it was, if it is the next version with other bytes:
// those of ours would be there. Equal bytes prove nothing: another client may have counted from the same number.
// receipt is that of the first attempt whose answer was lost. If a later attempt has another one, because Close or the
// end of the session took the first, that one proves nothing of the first attempt, which may have arrived late.
func (e *engine) findOut(ctx context.Context, base snapshot, post []byte, receipt string) (verdict, error) {
	now, err := e.read(ctx, true)
	if err != nil {
		return uncertain, err
	}
	if e.receipts != nil {
		switch found, err := e.receipts.find(ctx); {
		case err != nil:
			return uncertain, err
		case found == applied:
			return applied, nil
		case found == refused && !now.isSame(base) && receipt == e.receipts.sent:
			return refused, nil
		}
	}
	isNext := now.exists && now.version == base.version+1 && now.czxid == base.czxid
	if !base.exists {
		isNext = now.exists && now.version == 0
	}
	switch {
	case now.isSame(base):
		return undecided, nil
	case isNext && !bytes.Equal(now.data, post):
		return refused, nil
	}
	return uncertain, nil
}
