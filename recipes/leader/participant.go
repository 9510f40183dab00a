package leader

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// Participant is one participant of an election. In Java: Participant.
type Participant struct {
	ID       string
	IsLeader bool
}

// participantNode is a participant and the name of its node.
type participantNode struct {
	Participant
	node string
}

// participantNodes returns the first limit participants, the leader first; a limit of 0 means all. It leaves out
// participants that leave while it reads.
func participantNodes(
	ctx context.Context, client *framework.Client, path, prefix string, limit int,
) ([]participantNode, error) {
	children, err := client.GetChildren().ForPath(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		err = waitqueue.CheckChroot(ctx, client)
		if err == nil {
			return nil, nil // no participant yet, or the server has deleted the empty container
		}
	}
	if err != nil {
		return nil, errtext.Wrap(err, "leader", "participants")
	}
	var all []participantNode
	for _, child := range waitqueue.Sorted(children, prefix) {
		if _, ok := waitqueue.Sequence(child, prefix); !ok {
			continue
		}
		id, err := client.GetData().ForPath(ctx, zkpath.Join(path, child))
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case errors.Is(err, framework.ErrDataInconsistency): // the id is not compressed: use it as it is
		case err != nil:
			return nil, errtext.Wrap(err, "leader", "participants")
		}
		all = append(all, participantNode{Participant{ID: string(id), IsLeader: len(all) == 0}, child})
		if len(all) == limit {
			break
		}
	}
	return all, nil
}

func participants(ctx context.Context, client *framework.Client, path, prefix string) (all []Participant, err error) {
	nodes, err := participantNodes(ctx, client, path, prefix, 0)
	for _, n := range nodes {
		all = append(all, n.Participant)
	}
	return all, err
}

// leaderOf returns the leader, or the zero Participant.
func leaderOf(ctx context.Context, client *framework.Client, path, prefix string) (Participant, error) {
	leader, err := leaderNode(ctx, client, path, prefix)
	return leader.Participant, err
}

// leaderNode returns the leader and its node, or the zero participantNode.
func leaderNode(ctx context.Context, client *framework.Client, path, prefix string) (participantNode, error) {
	all, err := participantNodes(ctx, client, path, prefix, 1)
	if err != nil || len(all) == 0 {
		return participantNode{}, err
	}
	return all[0], nil
}
