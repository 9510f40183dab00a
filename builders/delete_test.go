package builders_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestDelete(t *testing.T) {
	t.Parallel()
	plain := func(b builders.Delete) builders.Delete { return b }
	quietly := func(b builders.Delete) builders.Delete { return b.Quietly() }
	idempotent := func(b builders.Delete) builders.Delete { return b.Idempotent() }
	guaranteed := func(b builders.Delete) builders.Delete { return b.Guaranteed() }
	children := func(b builders.Delete) builders.Delete { return b.DeletingChildrenIfNeeded() }
	version := func(v int32) func(builders.Delete) builders.Delete {
		return func(b builders.Delete) builders.Delete { return b.WithVersion(v) }
	}
	childrenOfVersion := func(v int32) func(builders.Delete) builders.Delete {
		return func(b builders.Delete) builders.Delete { return b.DeletingChildrenIfNeeded().WithVersion(v) }
	}
	none, leaf, deep := []string(nil), []string{"/n"}, []string{"/n", "/n/a", "/n/a/b", "/n/a/c", "/n/d"}
	tests := []struct {
		name    string
		there   []string
		build   func(builders.Delete) builders.Delete
		wantErr error
	}{
		{"present", leaf, plain, nil},
		{"absent", none, plain, zk.ErrNoNode},
		{"absent, quietly", none, quietly, nil},
		{"absent, idempotent", none, idempotent, nil},
		{"absent, guaranteed", none, guaranteed, zk.ErrNoNode},
		{"absent, with children", none, children, zk.ErrNoNode},
		{"present, guaranteed", leaf, guaranteed, nil},
		{"that version", leaf, version(0), nil},
		{"another version", leaf, version(1), zk.ErrBadVersion},
		{"not empty", deep, plain, zk.ErrNotEmpty},
		{"not empty, quietly", deep, quietly, zk.ErrNotEmpty},
		{"with children", deep, children, nil},
		{"with children, which it has not", leaf, children, nil},
		{"with children, that version", deep, childrenOfVersion(0), nil},
		{"with children, another version", deep, childrenOfVersion(1), zk.ErrBadVersion},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				for _, ns := range []string{"", "ns"} {
					t.Run(fmt.Sprintf("%s, namespace %q", tt.name, ns), func(t *testing.T) {
						client, tr := setUp(t, framework.WithNamespace(ns))
						prefix := ""
						if ns != "" {
							prefix = "/" + ns
							tr.make(prefix, "")
						}
						for _, p := range tt.there {
							tr.make(prefix+p, "")
						}
						err := w.delete(t, tt.build(client.Delete()), "/n").Err
						if tt.wantErr == nil && err == nil {
							if tr.exists(prefix + "/n") {
								t.Error("it is still there")
							}
							return
						}
						wantErr(t, err, tt.wantErr, "delete", "/n")
						for _, p := range tt.there {
							if !tr.exists(prefix + p) {
								t.Errorf("%s is gone", p)
							}
						}
					})
				}
			}
		})
	}
}

// What may not be deleted ends the sweep of the children with an error, in the background too, where an error
// without a waiter would try for ever: CURATOR-673, CURATOR-677.
func TestDeleteChildrenWithoutPermissionFails(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			for _, p := range []string{"/n", "/n/a", "/n/a/b"} {
				tr.make(p, "")
			}
			if _, err := tr.conn.SetACL(tr.root+"/n/a", zk.WorldACL(zk.PermRead|zk.PermAdmin), -1); err != nil {
				t.Fatal(err)
			}
			b := client.Delete().DeletingChildrenIfNeeded()
			wantErr(t, w.delete(t, b, "/n").Err, zk.ErrNoAuth, "delete", "/n")
			if _, err := tr.conn.SetACL(tr.root+"/n/a", zk.WorldACL(zk.PermAdmin|zk.PermDelete), -1); err != nil {
				t.Fatal(err)
			}
			wantErr(t, w.delete(t, b, "/n").Err, zk.ErrNoAuth, "delete", "/n") // may not be listed
			if _, err := tr.conn.SetACL(tr.root+"/n/a", builders.OpenACL, -1); err != nil {
				t.Fatal(err)
			}
			succeed(t, w.delete(t, b, "/n"))
		})
	}
}

// CURATOR-430.
func TestDeleteChildrenWhileOthersCreateAndDelete(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			tr := newTree(t)
			ctx := testenv.Context(t)
			const rounds, deleters = 4, 3
			creator := newClient(t, tr.connect)
			var clients []*framework.Client
			for range deleters {
				clients = append(clients, newClient(t, tr.connect))
			}
			for range rounds {
				for i := range 10 {
					if _, err := creator.Create().CreatingParentsIfNeeded().
						ForPath(ctx, fmt.Sprintf("/n/%d/%d", i%3, i), nil); err != nil {
						t.Fatal(err)
					}
				}
				errs := make(chan error, deleters)
				for _, client := range clients {
					go func() {
						errs <- w.delete(t, client.Delete().DeletingChildrenIfNeeded().Quietly(), "/n").Err
					}()
				}
				stop, stopped := make(chan struct{}), make(chan error)
				go func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							stopped <- nil
							return
						default:
						}
						_, err := creator.Create().ForPath(ctx, fmt.Sprintf("/n/late%d", i), nil)
						if errors.Is(err, zk.ErrNoNode) {
							err = nil // they were faster
						}
						if err != nil {
							stopped <- err
							return
						}
					}
				}()
				for range deleters {
					if err := receive(t, errs); err != nil {
						t.Error(err)
					}
				}
				close(stop)
				if err := receive(t, stopped); err != nil {
					t.Error(err)
				}
				if tr.exists("/n") {
					t.Fatal("it is still there")
				}
			}
		})
	}
}
