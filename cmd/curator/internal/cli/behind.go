package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/cmd/curator/internal/run"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// patienceOfUsers is how long a subcommand waits for others before it says so.
const patienceOfUsers = time.Second

// maxInFront is how many holders are named.
const maxInFront = 3

// nodesOf says where the nodes of the holders are: below the path or below that of sub, with a prefix in their names.
// As many as most may hold at a time.
type nodesOf struct {
	sub, prefix string
	most        int
}

// sayBehindWhom says on the standard error for whom this process waits, if that is still so after a while. The caller
// calls stop when it waits no longer.
func (h *holdCommand) sayBehindWhom(ctx context.Context, client *framework.Client, path string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case <-time.After(patienceOfUsers):
		}
		who, err := h.nodes.inFront(ctx, client, path)
		if err != nil || who == "" || ctx.Err() != nil { // an outage has lines of its own
			return
		}
		if h.events {
			h.event(run.Event{Event: "behind", Path: path, Reason: who})
			return
		}
		h.send([]byte("curator: " + line("waiting for "+path+" behind "+who) + "\n"))
	}()
	return func() {
		cancel()
		<-done
	}
}

// inFront returns a text about those who hold, "" if that is no other.
func (n *nodesOf) inFront(ctx context.Context, client *framework.Client, path string) (string, error) {
	dir := path
	if n.sub != "" {
		dir = zkpath.Join(path, n.sub)
	}
	names, err := client.GetChildren().ForPath(ctx, dir)
	if err != nil {
		return "", err
	}
	names = recognize.InOrder(names, n.prefix)
	names = names[:min(len(names), n.most)]
	more := max(len(names)-maxInFront, 0)
	nodes := []recognize.Node{{Path: dir}} // a semaphore is known by it
	for _, name := range names[:len(names)-more] {
		node := recognize.Node{Path: zkpath.Join(dir, name)}
		if node.Data, err = client.GetData().StoringStatIn(&node.Stat).ForPath(ctx, node.Path); err == nil {
			nodes = append(nodes, node)
		} else if !errors.Is(err, zk.ErrNoNode) {
			return "", err
		}
	}
	var found []string
	for _, p := range recognize.Find(nodes) {
		if p.Session == client.SessionID() || p.State == recognize.Waits {
			continue
		}
		holder := newHolder(p)
		c := holder.cells(time.Now())
		found = append(found, fmt.Sprintf("%s (%s, %s for %s)", zkpath.Join(p.Path, p.Node), c[3], c[2], c[4]))
	}
	if more > 0 {
		found = append(found, fmt.Sprintf("%d more", more))
	}
	return strings.Join(found, ", "), nil
}
