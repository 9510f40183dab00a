package nodes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
)

// Lost has the reason, and a node of another client in the place is one.
func TestPersistentNodeLostHasReason(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.start(n)
		s.next(events, nodes.Created)
		s.settle()

		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		s.wantErr(s.next(events, nodes.Lost).Err, nodes.ErrDeleted)
		s.next(events, nodes.Created)
		s.settle()

		s.expire(s.client.SessionID())
		s.wantErr(s.next(events, nodes.Lost).Err, framework.ErrSessionLost)
		s.next(events, nodes.Created)
		s.awaitOwned(keptPath, "one")
		s.settle()

		op := s.reader.TransactionOp()
		_, err := s.reader.Transaction().ForOperations(s.ctx,
			op.Delete().ForPath(keptPath), op.Create().WithMode(builders.Ephemeral).ForPath(keptPath, nil))
		s.must(err)
		s.wantErr(s.next(events, nodes.Lost).Err, nodes.ErrForeign)
		s.wantErr(s.next(events, nodes.Refused).Err, nodes.ErrForeign)
		s.must(n.Close(s.ctx))
	})
}

// With the option a node outlives sessions and ends with the first deletion.
func TestPersistentNodeEndsWhenDeleted(t *testing.T) {
	for _, mode := range []builders.CreateMode{builders.Ephemeral, builders.Persistent, builders.EphemeralSequential} {
		t.Run(mode.String(), func(t *testing.T) {
			inScene(t, func(s *scene) {
				n := nodes.NewPersistentNode(s.client, keptPath, mode, nil, nodes.WithEndWhenDeleted())
				events := s.events(n)
				s.start(n)
				s.next(events, nodes.Created)
				if mode.IsEphemeral() {
					s.expire(s.client.SessionID())
					s.next(events, nodes.Lost)
					s.next(events, nodes.Created)
					s.reset()
					s.next(events, nodes.Lost)
					s.next(events, nodes.Created)
				}
				select {
				case <-n.Done():
					t.Fatal("ended with its session")
				default:
				}
				s.must(s.reader.Delete().ForPath(s.ctx, n.ActualPath()))
				s.wantErr(s.next(events, nodes.Lost).Err, nodes.ErrDeleted)
				<-n.Done()
				s.wantErr(n.Err(), nodes.ErrDeleted)
				s.wantErr(n.Err(), zk.ErrNoNode)
				s.wantErr(n.SetData(s.ctx, []byte("two")), nodes.ErrDeleted)
				s.wantErr(n.WaitForInitialCreate(s.ctx), nodes.ErrDeleted)
				s.settle()
				if _, stat := s.get(n.ActualPath()); stat != nil {
					t.Error("created again")
				}
				s.must(n.Close(s.ctx))
				s.wantErr(n.Err(), nodes.ErrDeleted)
				s.must(n.Close(s.ctx))
				s.wantErr(n.Err(), nodes.ErrDeleted)
			})
		})
	}
}

// The program waits for Done, closes the node and then asks why it has ended: by Close alone there is no reason.
func TestPersistentNodeErrAfterCloseIsWhyItHasEnded(t *testing.T) {
	for name, deletes := range map[string]bool{"deleted": true, "closed": false} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				n := s.ephemeral(keptPath, "one", nodes.WithEndWhenDeleted())
				s.settle()
				closed := make(chan error, 1)
				if deletes {
					s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
				} else {
					go func() { closed <- n.Close(s.ctx) }()
					defer func() { s.must(<-closed) }()
				}
				<-n.Done()
				s.must(n.Close(s.ctx))
				var want error
				if deletes {
					want = nodes.ErrDeleted
				}
				s.wantErr(n.Err(), want)
				s.must(s.client.Close())
				s.wantErr(n.Err(), want)
			})
		})
	}
}

// The deletion may be that of the program's own client: the text of the reason names no other one.
func TestPersistentNodeEndsWhenItsClientDeletesIt(t *testing.T) {
	inScene(t, func(s *scene) {
		n := s.ephemeral(keptPath, "one", nodes.WithEndWhenDeleted())
		s.must(s.client.Delete().ForPath(s.ctx, keptPath))
		<-n.Done()
		if got, want := fmt.Sprint(n.Err()), "nodes: "+keptPath+": the node was deleted"; got != want {
			t.Errorf("the error is %q, want %q", got, want)
		}
		s.must(n.Close(s.ctx))
	})
}

func TestPersistentNodeDoneAfterClose(t *testing.T) {
	inScene(t, func(s *scene) {
		n := s.ephemeral(keptPath, "one")
		ctx, cancel := context.WithTimeout(s.ctx, time.Hour)
		defer cancel()
		s.must(n.Close(ctx))
		<-n.Done()
	})
}

// Another client takes the place of the deleted node before ours has looked. The node ends, and does not come back when
// the place is free.
func TestPersistentNodeEndWhenDeletedAndReplacedByAnother(t *testing.T) {
	inScene(t, func(s *scene) {
		n := s.ephemeral(keptPath, "one", nodes.WithEndWhenDeleted())
		s.settle()
		restore := s.place.Faults().RefuseConnects()
		s.place.Faults().CutAll()
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		// The server may remove the container, which is empty for a moment.
		_, err := s.reader.Create().CreatingParentContainersIfNeeded().WithMode(builders.Ephemeral).
			ForPath(s.ctx, keptPath, nil)
		s.must(err)
		restore()
		<-n.Done()
		s.wantErr(n.Err(), nodes.ErrDeleted)
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		s.settle()
		s.awaitNothing(keptPath)
	})
}
