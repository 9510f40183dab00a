package leader

import (
	"context"
	"errors"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// Participant is one of those who take part in an election. In Java: Participant.
type Participant struct {
	ID       string
	IsLeader bool
}

// entrant is a participant and its node.
type entrant struct {
	Participant
	node string
}

// entrants returns who takes part, the leader first. One that leaves meanwhile is left out.
func entrants(ctx context.Context, client Client, path, name string, most int) ([]entrant, error) {
	children, err := client.GetChildren().ForPath(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil // nobody ever took part, or the container is gone
	}
	if err != nil {
		return nil, errtext.Wrap(err, "leader", "participants")
	}
	var all []entrant
	for _, child := range lineup.Sorted(children, name) {
		if _, ours := lineup.Sequence(child, name); !ours {
			continue
		}
		id, err := client.GetData().ForPath(ctx, zkpath.Join(path, child))
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case errors.Is(err, framework.ErrDataInconsistency): // its client does not compress, ours does
		case err != nil:
			return nil, errtext.Wrap(err, "leader", "participants")
		}
		all = append(all, entrant{Participant{ID: string(id), IsLeader: len(all) == 0}, child})
		if len(all) == most {
			break
		}
	}
	return all, nil
}

func participants(ctx context.Context, client Client, path, name string) (all []Participant, err error) {
	entered, err := entrants(ctx, client, path, name, 0)
	for _, e := range entered {
		all = append(all, e.Participant)
	}
	return all, err
}

// leaderOf returns the leader, the zero Participant if there is none.
func leaderOf(ctx context.Context, client Client, path, name string) (Participant, error) {
	leader, err := first(ctx, client, path, name)
	return leader.Participant, err
}

// first returns the leader and its node.
func first(ctx context.Context, client Client, path, name string) (entrant, error) {
	all, err := entrants(ctx, client, path, name, 1)
	if err != nil || len(all) == 0 {
		return entrant{}, err
	}
	return all[0], nil
}

// ObserveLatch returns who leads by the latches of a path, for one who takes no part: the leader of now, then every
// other one, the zero Participant while there is none. Changes that follow each other at once may be left out, the last
// one is not. It ends with ctx, whose error comes last, or with an error that no connection would mend.
func ObserveLatch(ctx context.Context, client Client, path string) iter.Seq2[Participant, error] {
	return observe(ctx, client, path, latchName)
}

// ObserveSelector is [ObserveLatch] for the selectors of a path.
func ObserveSelector(ctx context.Context, client Client, path string) iter.Seq2[Participant, error] {
	return observe(ctx, client, path, selectorName)
}

func observe(ctx context.Context, client Client, path, name string) iter.Seq2[Participant, error] {
	return func(yield func(Participant, error) bool) {
		o := observer{client: client, path: path, name: name, changes: make(chan zk.Event, 1)}
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
	client     Client
	path, name string
	watcher    *callbacks.Watcher
	changes    chan zk.Event
	last       entrant
}

// next waits until somebody else leads; the first time, it does not wait.
func (o *observer) next(ctx context.Context, first bool) (Participant, error) {
	for {
		leader, err := o.look(ctx)
		switch {
		case err == nil && (first || leader != o.last):
			o.last = leader
			return leader.Participant, nil
		case err == nil:
			select {
			case <-o.changes:
			case <-ctx.Done():
				return Participant{}, ctx.Err()
			}
		case !lineup.IsOutage(err):
			return Participant{}, err
		default:
			if err := o.client.BlockUntilConnected(ctx); err != nil {
				return Participant{}, err
			}
		}
	}
}

// look sets the watch, and finds the leader of then.
func (o *observer) look(ctx context.Context) (entrant, error) {
	_, err := o.client.GetChildren().UsingWatcher(o.watcher).ForPath(ctx, o.path)
	if errors.Is(err, zk.ErrNoNode) {
		stat, err := o.client.CheckExists().UsingWatcher(o.watcher).ForPath(ctx, o.path)
		if err != nil || stat == nil {
			return entrant{}, err
		}
		return o.look(ctx) // it came meanwhile
	}
	if err != nil {
		return entrant{}, err
	}
	return first(ctx, o.client, o.path, o.name)
}

func (o *observer) stop(ctx context.Context) {
	_ = o.client.Watches().Remove(o.watcher).Guaranteed().Quietly().InBackground(lineup.Ignore).
		ForPath(context.WithoutCancel(ctx), o.path)
}
