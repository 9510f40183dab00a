package framework

import (
	"context"
)

// ensembleFollower applies the connect string of the ensemble provider whenever it has changed. A provider of the
// program is called on a goroutine of its own, without a lock: if it blocks, only the updates of the servers wait.
type ensembleFollower struct {
	provider EnsembleProvider
	apply    func(target connectString, keepSession bool)
	inline   bool // the provider is a FixedEnsembleProvider, which does not block

	poke  chan struct{}      // requests a look, without waiting for it
	looks chan chan struct{} // requests a look; the sent channel is closed after it
	quit  chan struct{}      // closed by stop
	ended chan struct{}      // closed when run has returned
}

func newEnsembleFollower(p EnsembleProvider, apply func(connectString, bool)) *ensembleFollower {
	_, fixed := p.(*FixedEnsembleProvider)
	return &ensembleFollower{provider: p, apply: apply, inline: fixed}
}

// start may be called again after stop: a start of the client that fails may be tried again.
func (f *ensembleFollower) start() {
	f.poke, f.looks = make(chan struct{}, 1), make(chan chan struct{})
	f.quit, f.ended = make(chan struct{}), make(chan struct{})
	if f.inline {
		close(f.ended)
		return
	}
	go f.run()
}

func (f *ensembleFollower) run() {
	defer close(f.ended)
	var changed <-chan struct{}
	if n, ok := f.provider.(ServerNotifier); ok {
		changed = n.ServersChanged()
	}
	for {
		var done chan struct{}
		select {
		case <-f.poke:
		case done = <-f.looks:
		case _, open := <-changed:
			if !open {
				changed = nil // no more changes
			}
		case <-f.quit:
			return
		}
		f.look()
		if done != nil {
			close(done)
		}
	}
}

// look applies the connect string if it is valid.
func (f *ensembleFollower) look() {
	if target, err := parseConnectString(f.provider.ConnectionString()); err == nil {
		f.apply(target, f.provider.UpdateServerListEnabled())
	}
}

// follow requests a look and does not wait for it.
func (f *ensembleFollower) follow() {
	if f.inline {
		f.look()
		return
	}
	select {
	case f.poke <- struct{}{}:
	default: // a look is already requested
	}
}

// followNow requests a look, and waits until it is done or ctx ends.
func (f *ensembleFollower) followNow(ctx context.Context) {
	if f.inline {
		f.look()
		return
	}
	done := make(chan struct{})
	select {
	case f.looks <- done:
	case <-f.quit:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-f.quit:
	case <-ctx.Done():
	}
}

// stop ends run.
func (f *ensembleFollower) stop() { close(f.quit) }

// lastError returns the error of the provider, if it has one.
func (f *ensembleFollower) lastError() error {
	if p, ok := f.provider.(interface{ LastError() error }); ok {
		return p.LastError()
	}
	return nil
}
