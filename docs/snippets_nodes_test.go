package docs_test

import (
	"context"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
)

var _ = []any{
	keepNode, setNode, closeNode, beMember, keepTask, keepNodeFor, keepProtected, protectedPath, keepTTL, groupMember,
	keepUntilDeleted,
}

func keepNode(ctx context.Context, client *framework.Client) error {
	node := nodes.NewPersistentNode(client, "/members/a", builders.Ephemeral, []byte("10.0.0.7"))
	node.AddListener(func(_ context.Context, ev nodes.Event) {
		if ev.Type == nodes.Refused {
			log.Warn("node", "error", ev.Err) // it is tried again
		}
	})
	if err := node.Start(); err != nil {
		return err
	}
	err := node.WaitForInitialCreate(ctx)
	return err
}

func setNode(ctx context.Context, node *nodes.PersistentNode) (err error) {
	err = node.SetData(ctx, []byte("10.0.0.8"))
	return err
}

func closeNode(ctx context.Context, node *nodes.PersistentNode) (err error) {
	err = node.Close(ctx)
	return err
}

func beMember(ctx context.Context, client *framework.Client, id string, payload []byte) error {
	member := nodes.NewGroupMember(client, "/workers", id, payload)
	if err := member.Start(); err != nil {
		return err
	}
	if err := member.Ready(ctx); err != nil { // it is in, and knows the others
		return err
	}
	for ev := range member.Changes(ctx) { // those who are in, and then every change
		use(ev.ID, ev.Payload, ev.Left)
	}
	return nil
}

func keepTask(client *framework.Client) {
	task := nodes.NewPersistentTTLNode(client, "/tasks/7", 10*time.Minute, []byte("running"))
	use(task)
}

func keepUntilDeleted(client *framework.Client) {
	node := nodes.NewPersistentNode(client, "/workers/a", builders.Ephemeral, nil, nodes.WithEndWhenDeleted())
	use(node)
	<-node.Done() // an operator has deleted the node, or Close was called
}

func keepNodeFor(ctx context.Context, client *framework.Client, data, newData []byte) error {
	node := nodes.NewPersistentNode(
		client, "/members/a", builders.Ephemeral, data)
	if err := node.Start(); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := node.WaitForInitialCreate(wait); err != nil {
		return err // with the reason
	}
	if err := node.SetData(ctx, newData); err != nil {
		return err
	}
	return node.Close(ctx)
}

func keepProtected(client *framework.Client, data []byte) error {
	node := nodes.NewPersistentNode(client, "/members/m-",
		builders.EphemeralSequential, data, nodes.WithProtection())
	node.AddListener(func(_ context.Context, ev nodes.Event) {
		if ev.Type == nodes.Created {
			log.Info("created", "path", ev.Path)
		}
	})
	err := node.Start()
	return err
}

func protectedPath(node *nodes.PersistentNode) string {
	path := node.ActualPath()
	return path
}

func keepTTL(client *framework.Client, data []byte) error {
	node := nodes.NewPersistentTTLNode(
		client, "/tasks/7", 10*time.Minute, data)
	err := node.Start()
	return err
}

func groupMember(ctx context.Context, client *framework.Client, id string, payload, newPayload []byte) error {
	member := nodes.NewGroupMember(
		client, "/workers", id, payload)
	if err := member.Start(); err != nil {
		return err
	}
	members := member.CurrentMembers()
	use(members)
	if err := member.SetThisData(ctx, newPayload); err != nil {
		return err
	}
	return member.Close(ctx)
}
