package nodes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
)

// Each error has the path of the node that it is about, once.
func TestErrorsHavePathOnce(t *testing.T) {
	inScene(t, func(s *scene) {
		created := func(path string, mode builders.CreateMode, acl ...zk.ACL) {
			_, err := s.reader.Create().CreatingParentsIfNeeded().WithMode(mode).WithACL(acl...).ForPath(s.ctx, path, nil)
			s.must(err)
		}
		readable := zk.WorldACL(zk.PermRead)
		created("/a/theirs", builders.Ephemeral, zk.WorldACL(zk.PermAll)...)
		created("/b/stays", builders.Persistent, zk.WorldACL(zk.PermAll)...)
		created("/c/closed", builders.Persistent, readable...)
		created("/d/fixed", builders.Persistent, readable...)
		created("/e/hidden", builders.Persistent, zk.WorldACL(zk.PermAdmin)...)
		created("/f/task/touch", builders.Ephemeral, zk.WorldACL(zk.PermAll)...)
		theirs := fmt.Sprintf("session %#x", s.reader.SessionID())
		ended, end := context.WithCancel(s.ctx)
		end()
		for path, tt := range map[string]struct{ node, refused, reason string }{
			"/a/theirs":   {"", "/a/theirs", "the node belongs to somebody else: " + theirs},
			"/b/stays":    {"", "/b/stays", "the node belongs to somebody else: it is not ephemeral"},
			"/c/closed/a": {"", "/c/closed/a", "not authenticated"},
			"/g/acl":      {"acl", "/g/acl", "invalid ACL specified"},
			"/d/fixed":    {"persistent", "/d/fixed", "not authenticated"},
			"/e/hidden":   {"persistent", "/e/hidden", "not authenticated"},
			"/f/task":     {"ttl", "/f/task/touch", "the node belongs to somebody else: " + theirs},
		} {
			var n *nodes.PersistentNode
			switch tt.node {
			case "acl":
				n = nodes.NewPersistentNode(s.client, path, builders.Ephemeral, []byte("x"), nodes.WithACL(zk.ACL{}))
			case "persistent":
				n = nodes.NewPersistentNode(s.client, path, builders.Persistent, []byte("x"))
			case "ttl":
				n = nodes.NewPersistentTTLNode(s.client, path, time.Minute, []byte("x")).PersistentNode
			default:
				n = nodes.NewPersistentNode(s.client, path, builders.Ephemeral, []byte("x"))
			}
			refused := make(chan nodes.Event, 1)
			n.AddListener(func(_ context.Context, ev nodes.Event) {
				if ev.Type == nodes.Refused {
					refused <- ev
				}
			})
			s.must(n.Start())
			want := func(what string, err error, text string) {
				t.Helper()
				if err == nil || err.Error() != text {
					t.Errorf("%s: got %q, want %q", what, err, text)
				}
			}
			ev := <-refused
			want("event", ev.Err, "nodes: "+tt.refused+": "+tt.reason)
			if ev.Path != tt.refused {
				t.Errorf("%s: the event is about %s", path, ev.Path)
			}
			want("Err", n.Err(), "nodes: "+tt.refused+": "+tt.reason)
			waited := "nodes: wait for initial create " + tt.refused + ": context canceled: " + tt.reason
			testenv.Eventually(s, func() bool { // the node itself may come after its refused child
				err := n.WaitForInitialCreate(ended)
				return err != nil && err.Error() == waited
			}, waited)
			if path == tt.refused {
				want("SetData", n.SetData(s.ctx, []byte("y")), "nodes: set data "+path+": "+tt.reason)
			}
			_ = n.Close(ended)
		}
	})
}

// The child of a node with a TTL waits for the parents of the node, too.
func TestPersistentTTLNodeWithoutParentsCreatesNone(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, time.Minute, nil, nodes.WithoutParents())
		events := s.events(n.PersistentNode)
		s.must(n.Start())
		s.wantErr(s.next(events, nodes.Refused).Err, zk.ErrNoNode)
		if _, stat := s.get("/tasks"); stat != nil {
			t.Error("the parent was created")
		}
		s.must(s.reader.CreateContainers(s.ctx, "/tasks"))
		s.must(n.WaitForInitialCreate(s.ctx))
		s.must(n.Close(s.ctx))
	})
}
