package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// element is an element of a simple queue that is being removed.
type element struct {
	claim  *deleteClaim
	readAt time.Time // when the reading began
	gap    int64     // of the watch, when the reading began
}

// anyBytes decodes nothing: an element is the bytes of its node.
func anyBytes([]byte) (any, error) { return nil, nil } //nolint:nilnil // there is no error

// awaitRead waits until the element is read.
func (e *element) awaitRead(ctx context.Context) error {
	if !awaitDone(ctx, e.claim.read.Done()) {
		return ctx.Err()
	}
	e.claim.isReadable(context.WithoutCancel(ctx))
	return e.claim.err
}

// data returns the bytes. They are not nil.
func (e *element) data() []byte {
	if e.claim.data == nil {
		return []byte{}
	}
	return e.claim.data
}

func (e *element) node() string { return e.claim.place.node(e.claim.name) }

// delete submits the deletion.
func (e *element) delete(ctx context.Context) error {
	e.claim.submit(once(ctx))
	if isClosed(e.claim.deleted.Done()) {
		if _, err := e.claim.deleted.Wait(ctx); errors.Is(err, framework.ErrNotSent) {
			return err
		}
	}
	return nil
}

// end waits for the outcome of the deletion. The error is errTaken if another consumer has the element, and errChanged
// if it must be read again.
func (e *element) end(ctx context.Context) error {
	awaitAnswer(ctx, e.claim.done())
	_, err := e.claim.end(ctx)
	isUnwatched := err == nil && e.gap != e.claim.watch.gap() // an event may be missing
	switch {
	case isUnwatched, errors.Is(err, errPathDeleted): // perhaps by the server, behind the last element
		err = e.confirm(ctx)
	case waitqueue.IsOutage(err):
		err = e.resolve(ctx)
	}
	switch {
	case err == nil, errors.Is(err, errTaken), errors.Is(err, errChanged):
		return err
	case isUncertain(ctx, err) && !errors.Is(err, ErrUncertain):
		err = errtext.Join(ErrUncertain, err)
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = errtext.Join(err, ended)
	}
	return &ItemError{Path: e.node(), Data: e.data(), Err: err}
}

// resolve finds out the fate of the element after a lost connection.
func (e *element) resolve(ctx context.Context) error {
	m, err := e.claim.resolve(ctx)
	switch {
	case m == nil && err == nil:
		return errChanged
	case err == nil, errors.Is(err, errPathDeleted): // an event may be missing
		return e.confirm(ctx)
	}
	return err
}

// confirm finds out whether this very element was deleted, because its name recurs in a recreated path. A missing path
// was removed by the server as an empty container. At worst that was a path which another process had recreated in
// between.
func (e *element) confirm(ctx context.Context) error {
	ctx, cancel := outliving(ctx)
	defer cancel()
	p := e.claim.place
	var stat *zk.Stat
	err := waitqueue.RetryOutage(ctx, p.client, func() (err error) {
		stat, err = p.client.CheckExists().ForPath(builders.Pipelined(ctx), p.path)
		return err
	})
	switch {
	case err != nil:
		return errtext.Join(ErrUncertain, err)
	case stat == nil || stat.Czxid < e.claim.stat.Czxid: // the server removes an empty container
		return nil
	}
	return errPathDeleted
}
