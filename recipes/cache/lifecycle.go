package cache

import (
	"context"
	"sync"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// lifecycle is the start and the end of a cache or of a PersistentWatcher, and the calls of its listeners between them,
// one at a time and in order.
type lifecycle struct {
	client *framework.Client // a view for the library
	recipe string            // the name in error reports
	calls  waitqueue.Serial
	ctx    context.Context // also the context of the listeners; end cancels it
	cancel context.CancelCauseFunc

	life   sync.Mutex
	began  bool
	stop   func()      // set by begin
	detach func() bool // takes the end of the client back
}

func newLifecycle(client *framework.Client, recipe string) *lifecycle {
	l := &lifecycle{client: waitqueue.ForLibrary(client), recipe: recipe}
	root := context.Background() //nolint:forbidigo // close cancels it
	l.ctx, l.cancel = context.WithCancelCause(hook.Telemetry(client).WithoutSpans(root))
	return l
}

// begin calls start, once, with life held. It returns the errors of Start. end calls stop, and so does the end of the
// client.
func (l *lifecycle) begin(path string, start, stop func()) error {
	if err := zkpath.Validate(path, false); err != nil {
		return errtext.Wrap(err, "cache", "start")
	}
	l.life.Lock()
	defer l.life.Unlock()
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if l.began {
		return ErrStarted
	}
	closing := hook.Closing(l.client)
	if closing.Err() != nil {
		return errtext.Wrap(context.Cause(closing), "cache", "start")
	}
	l.began, l.stop = true, stop
	start()
	l.detach = context.AfterFunc(closing, func() { l.end(context.Cause(closing)) })
	return nil
}

// checkRunning returns nil between begin and end, else the reason.
func (l *lifecycle) checkRunning() error {
	l.life.Lock()
	defer l.life.Unlock()
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if !l.began {
		return ErrNotStarted
	}
	return nil
}

// do runs fn after the earlier funcs, unless end is called by then.
func (l *lifecycle) do(fn func(ctx context.Context)) {
	l.calls.Do(func() {
		if l.ctx.Err() == nil {
			fn(l.ctx)
		}
	})
}

// call calls one listener, unless end is called. A panic is reported, and later calls go on.
func (l *lifecycle) call(listener func()) {
	if l.ctx.Err() == nil {
		waitqueue.Guard(context.WithoutCancel(l.ctx), l.client, l.recipe)(listener)
	}
}

// end calls the stop of begin, once and only after begin, with life held. No listener call begins after it returns. It
// ends the context of a call that is under way with cause, and does not wait for it: the call may be its caller.
func (l *lifecycle) end(cause error) {
	l.life.Lock()
	defer l.life.Unlock()
	first := l.ctx.Err() == nil
	if l.cancel(cause); first && l.began {
		l.detach()
		l.stop()
	}
}

// unwatch removes a watch in the background.
func (l *lifecycle) unwatch(w *callbacks.Watcher, path string) {
	_ = l.client.Watches().Remove(w).Guaranteed().Quietly().InBackground(waitqueue.Ignore).
		WithUnhandledErrorListener(ignoreError).ForPath(context.WithoutCancel(l.ctx), path)
}

// ignoreError discards an error that the callback of the operation handles.
func ignoreError(string, error) {}
