package leader

import (
	"context"
	"errors"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
)

// ObserveLatch returns the leaders of the latches of a path, without taking part: the current leader, then each new
// one. It returns the zero Participant while there is no leader. It may leave out changes that follow each other at
// once, but never the last one. It ends with ctx, whose error comes last, or with an error that is not an outage, such
// as framework.ErrNoChroot.
func ObserveLatch(ctx context.Context, client *framework.Client, path string) iter.Seq2[Participant, error] {
	return observe(ctx, client, path, latchName)
}

// ObserveSelector is [ObserveLatch] for the selectors of a path.
func ObserveSelector(ctx context.Context, client *framework.Client, path string) iter.Seq2[Participant, error] {
	return observe(ctx, client, path, selectorName)
}

func observe(ctx context.Context, client *framework.Client, path, prefix string) iter.Seq2[Participant, error] {
	return func(yield func(Participant, error) bool) {
		o := observer{client: client, path: path, prefix: prefix, changes: make(chan zk.Event, 1)}
		o.watcher = callbacks.NewChanWatcher(o.changes)
		defer o.stop(ctx)
		for first := true; ; first = false {
			leader, err := o.next(ctx, first)
			if err != nil {
				yield(Participant{}, err)
				return
			}
			if !yield(leader, nil) {
				return
			}
		}
	}
}

// observer watches an election.
type observer struct {
	client       *framework.Client
	path, prefix string
	watcher      *callbacks.Watcher
	changes      chan zk.Event
	last         participantNode
}

// next waits for another leader. The first time it does not wait.
func (o *observer) next(ctx context.Context, first bool) (Participant, error) {
	for {
		leader, err := o.watchLeader(ctx)
		switch {
		case err == nil && (first || leader != o.last):
			o.last = leader
			return leader.Participant, nil
		case err == nil:
			select {
			case <-o.changes:
			case <-ctx.Done():
				return Participant{}, hook.EndOf(ctx, o.client)
			}
		case !waitqueue.IsPassing(err):
			return Participant{}, err
		default:
			if err := waitqueue.AwaitConnection(ctx, o.client); err != nil {
				return Participant{}, err
			}
		}
	}
}

// watchLeader watches the line, then reads the leader.
func (o *observer) watchLeader(ctx context.Context) (participantNode, error) {
	for {
		_, err := o.client.GetChildren().UsingWatcher(o.watcher).ForPath(ctx, o.path)
		switch {
		case err == nil:
			return leaderNode(ctx, o.client, o.path, o.prefix)
		case !errors.Is(err, zk.ErrNoNode):
			return participantNode{}, err
		}
		stat, err := o.client.CheckExists().UsingWatcher(o.watcher).ForPath(ctx, o.path)
		switch {
		case err != nil:
			return participantNode{}, err
		case stat == nil: // else the node was created meanwhile
			return participantNode{}, waitqueue.CheckChroot(ctx, o.client)
		}
	}
}

// stop removes the watch in the background.
func (o *observer) stop(ctx context.Context) {
	waitqueue.Unwatch(context.WithoutCancel(ctx), o.client, o.watcher, o.path)
}
