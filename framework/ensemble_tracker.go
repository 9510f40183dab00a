package framework

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
)

// ensembleTracker follows dynamic reconfigurations: it reads and watches the configuration of the ensemble, and hands
// its servers to the ensemble provider. In Java: EnsembleTracker.
type ensembleTracker struct {
	client  *Client // a view for the library
	watcher *callbacks.Watcher
	applies *dispatch.Queue // calls of the ensemble provider, which may be the program's; nil before the start

	mu       sync.Mutex
	active   bool
	reading  int   // number of reads in flight
	session  int64 // session of the last successful read
	config   []byte
	failures int         // reads that failed in a row
	retry    *time.Timer // of a read that failed on a connection; may be nil
}

func newEnsembleTracker(client *Client) *ensembleTracker {
	t := &ensembleTracker{client: client}
	t.watcher = callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
		if ev.Type != zk.EventSession {
			t.read()
		}
	})
	return t
}

func (t *ensembleTracker) start() {
	t.mu.Lock()
	t.active = true
	t.mu.Unlock()
	t.read()
}

func (t *ensembleTracker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active = false
	if t.retry != nil {
		t.retry.Stop()
	}
}

// stateChanged reads the configuration again in a new session, which has no watches yet, and after a lost connection.
func (t *ensembleTracker) stateChanged(s ConnectionState) {
	if s == Reconnected || s == Connected && t.due() {
		t.read()
	}
}

// due reports whether the read at the start failed before there was a connection, or was answered in the session of a
// read-only server.
func (t *ensembleTracker) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reading == 0 && t.session != t.client.SessionID()
}

func (t *ensembleTracker) current() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.config
}

func (t *ensembleTracker) read() {
	t.mu.Lock()
	active := t.active
	if active {
		t.reading++
	}
	t.mu.Unlock()
	if active { // an error means that the client is closed
		_ = t.client.GetConfig().UsingWatcher(t.watcher).InBackground(t.take).WithUnhandledErrorListener(t.failed).
			ForEnsemble(exec.WithoutOrder(exec.WithoutBound(telemetry.Untraced(exec.Root))))
	}
}

// failed logs the error: the configuration is read again, with the next connection at the latest.
func (t *ensembleTracker) failed(message string, err error) {
	t.client.core.cfg.logger.Debug("configuration of the ensemble: "+message, "error", err)
}

// readLater reads again after a pause, if there is a connection. It may have come while the failed read was under way:
// then due has waited for that. Without a connection the next one reads again. An old standalone server has no such
// node. mu is held.
func (t *ensembleTracker) readLater(err error) {
	if !t.active || !jute.IsPassing(err) || !t.client.IsConnected() {
		return
	}
	pause := min(trackerPause<<min(t.failures, 10), maxTrackerPause)
	t.failures++
	t.retry = time.AfterFunc(pause, t.read)
}

// The pauses between reads that fail on a connection grow.
const (
	trackerPause    = 100 * time.Millisecond
	maxTrackerPause = time.Minute
)

// take applies a configuration that was read.
func (t *ensembleTracker) take(ctx context.Context, ev callbacks.Event) {
	t.mu.Lock()
	t.reading--
	if ev.Err == nil {
		t.session, t.config, t.failures = t.client.SessionID(), ev.Data, 0
	} else {
		t.readLater(ev.Err)
	}
	t.mu.Unlock()
	if ev.Err != nil {
		return
	}
	k := t.client.core
	s, err := configToConnectString(ev.Data, k.connection.chroot())
	if err != nil {
		k.cfg.logger.WarnContext(ctx, "configuration of the ensemble", "error", err)
		return
	}
	if s != "" {
		t.applies.Push(dispatch.Func(func() {
			k.guard(ctx, "ensemble provider", func() {
				k.cfg.ensemble.SetConnectionString(s)
				k.connection.follower.follow()
			})
		}))
	}
}
