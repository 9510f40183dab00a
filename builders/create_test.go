package builders_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/zkpath"
)

func TestCreateModes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode     builders.CreateMode
		ttl      time.Duration
		wantName string
	}{
		{builders.Persistent, 0, `^/n$`},
		{builders.Ephemeral, 0, `^/n$`},
		{builders.PersistentSequential, 0, `^/n\d{10}$`},
		{builders.EphemeralSequential, 0, `^/n\d{10}$`},
		{builders.Container, 0, `^/n$`},
		{builders.PersistentWithTTL, time.Minute, `^/n$`},
		{builders.PersistentSequentialWithTTL, time.Minute, `^/n\d{10}$`},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.mode.String(), func(t *testing.T) {
					client, tr := setUp(t)
					b := client.Create().WithMode(tt.mode).WithTTL(tt.ttl)
					var stored zk.Stat
					ev := succeed(t, w.create(t, b.StoringStatIn(&stored), "/n", []byte("data")))
					if !regexp.MustCompile(tt.wantName).MatchString(ev.Name) {
						t.Errorf("name is %q", ev.Name)
					}
					data, stat := tr.read(ev.Name)
					equal(t, "data", data, "data")
					equal(t, "stored stat", stored, stat)
					var owner int64
					if tt.mode.IsEphemeral() {
						owner = client.SessionID()
					}
					equal(t, "owner", stat.EphemeralOwner, owner)
					if !tt.mode.IsSequential() {
						wantErr(t, w.create(t, b, "/n", nil).Err, zk.ErrNodeExists, "create", "/n")
					}
				})
			}
		})
	}
}

func TestContainerVanishesWithItsLastChild(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			succeed(t, w.create(t, client.Create().WithMode(builders.Container), "/c", nil))
			tr.make("/c/child", "")
			tr.remove("/c/child")
			tr.awaitGone("/c")
		})
	}
}

func TestNodeWithTTLVanishes(t *testing.T) {
	t.Parallel()
	for _, mode := range []builders.CreateMode{
		builders.PersistentWithTTL, builders.PersistentSequentialWithTTL,
	} {
		for _, w := range ways {
			t.Run(string(w), func(t *testing.T) {
				client, tr := setUp(t)
				b := client.Create().WithMode(mode)
				kept := succeed(t, w.create(t, b.WithTTL(time.Hour), "/n", nil)).Name
				tr.awaitGone(succeed(t, w.create(t, b.WithTTL(time.Millisecond), "/short", nil)).Name)
				if !tr.exists(kept) {
					t.Error("gone before its time")
				}
			})
		}
	}
}

func TestCreateParents(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			t.Run("missing without the option", func(t *testing.T) {
				client, tr := setUp(t)
				wantErr(t, w.create(t, client.Create(), "/a/b", nil).Err, zk.ErrNoNode, "create", "/a/b")
				equal(t, "nodes", tr.children("/"), []string{})
			})
			t.Run("persistent and empty", func(t *testing.T) {
				client, tr := setUp(t, framework.WithDefaultData([]byte("default")), framework.WithCompression())
				b := client.Create().CreatingParentsIfNeeded()
				equal(t, "name", succeed(t, w.create(t, b, "/a/b/c", nil)).Name, "/a/b/c")
				for _, p := range []string{"/a", "/a/b"} {
					data, _ := tr.read(p)
					equal(t, "data of "+p, data, "")
				}
				succeed(t, w.create(t, b, "/a/b/d", nil)) // they are there
				succeed(t, w.create(t, b, "/top", nil))   // there are none
			})
			t.Run("containers", func(t *testing.T) {
				client, tr := setUp(t)
				b := client.Create().CreatingParentContainersIfNeeded()
				succeed(t, w.create(t, b, "/a/b/c", nil))
				tr.remove("/a/b/c")
				tr.awaitGone("/a/b")
				tr.awaitGone("/a")
			})
			t.Run("the last word counts", func(t *testing.T) {
				client, tr := setUp(t)
				b := client.Create().CreatingParentContainersIfNeeded().CreatingParentsIfNeeded()
				succeed(t, w.create(t, b, "/a/b", nil))
				succeed(t, w.create(t, b.CreatingParentContainersIfNeeded(), "/control/b", nil))
				tr.remove("/a/b")
				tr.remove("/control/b")
				tr.awaitGone("/control")
				if !tr.exists("/a") {
					t.Error("the persistent parent is gone")
				}
			})
			t.Run("no containers in this client", func(t *testing.T) {
				client, tr := setUp(t, framework.WithoutContainerParents())
				succeed(t, w.create(t, client.Create().CreatingParentContainersIfNeeded(), "/a/b", nil))
				succeed(t, w.create(t, client.Create().WithMode(builders.Container), "/control", nil)) // asked for
				tr.make("/control/b", "")
				tr.remove("/a/b")
				tr.remove("/control/b")
				tr.awaitGone("/control")
				if !tr.exists("/a") {
					t.Error("the parent was a container")
				}
			})
			t.Run("of an ephemeral", func(t *testing.T) {
				client, _ := setUp(t)
				b := client.Create().CreatingParentsIfNeeded().WithMode(builders.Ephemeral)
				succeed(t, w.create(t, b, "/a/e", nil))
				wantErr(t, w.create(t, b, "/a/e/x", nil).Err, zk.ErrNoChildrenForEphemerals, "create", "/a/e/x")
				err := w.create(t, b, "/a/e/x/y", nil).Err
				wantErr(t, err, zk.ErrNoChildrenForEphemerals, "create", "/a/e/x/y")
			})
		})
	}
}

// CURATOR-719.
func TestParallelOrSetDataOnAFreshDeepPath(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			tr := newTree(t)
			const clients, each = 3, 8
			errs := make(chan error, clients*each)
			for i := range clients {
				client := newClient(t, tr.connect)
				for j := range each {
					go func() {
						b := client.Create().CreatingParentsIfNeeded().OrSetData()
						ev := w.create(t, b, "/deep/in/the/tree", fmt.Append(nil, i, j))
						if ev.Err == nil && ev.Name != "/deep/in/the/tree" {
							ev.Err = fmt.Errorf("name is %q", ev.Name)
						}
						errs <- ev.Err
					}()
				}
			}
			for range clients * each {
				if err := receive(t, errs); err != nil {
					t.Error(err)
				}
			}
			_, stat := tr.read("/deep/in/the/tree")
			equal(t, "version", stat.Version, clients*each-1)
		})
	}
}

// forPath is an ACL provider that knows some paths, as they are with the namespace.
type forPath map[string][]zk.ACL

func (forPath) DefaultACL() []zk.ACL { return []zk.ACL{} }

func (p forPath) ACLForPath(path string) []zk.ACL { return p[path] }

func TestCreateACL(t *testing.T) {
	t.Parallel()
	given := append(zk.DigestACL(zk.PermAll, "user", "secret"), builders.OpenACL...)
	provided := append(zk.DigestACL(zk.PermAll, "provider", "secret"), builders.OpenACL...)
	plain := func(b builders.Create) builders.Create { return b }
	tests := []struct {
		name     string
		provider builders.ACLProvider
		build    func(builders.Create) builders.Create
		leaf     []zk.ACL
		parent   []zk.ACL
		ns       []zk.ACL // of the namespace's own node
	}{
		{"open by default", builders.FixedACL(nil), plain, builders.OpenACL, builders.OpenACL, builders.OpenACL},
		{"of the provider", builders.FixedACL(provided), plain, provided, provided, provided},
		{
			"of the provider for a path",
			forPath{"/ns/a/b": provided, "/a/b": provided},
			plain,
			provided, builders.OpenACL, builders.OpenACL,
		},
		{
			"given", builders.FixedACL(provided),
			func(b builders.Create) builders.Create { return b.WithACL(given...) },
			given, provided, provided,
		},
		{
			"given and applied to parents", builders.FixedACL(provided),
			func(b builders.Create) builders.Create { return b.WithACLAppliedToParents(given...) },
			given, given, provided,
		},
		{
			"the last word counts", builders.FixedACL(provided),
			func(b builders.Create) builders.Create {
				return b.WithACLAppliedToParents(builders.OpenACL...).WithACL(given...)
			},
			given, provided, provided,
		},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				for _, ns := range []string{"", "ns"} {
					t.Run(fmt.Sprintf("%s, namespace %q", tt.name, ns), func(t *testing.T) {
						client, tr := setUp(t, framework.WithACLProvider(tt.provider), framework.WithNamespace(ns))
						b := tt.build(client.Create().CreatingParentsIfNeeded())
						succeed(t, w.create(t, b, "/a/b", nil))
						prefix := ""
						if ns != "" {
							prefix = "/" + ns
							equal(t, "ACL of the namespace", tr.acl(prefix), tt.ns)
						}
						equal(t, "ACL of the parent", tr.acl(prefix+"/a"), tt.parent)
						equal(t, "ACL of the node", tr.acl(prefix+"/a/b"), tt.leaf)
					})
				}
			}
		})
	}
}

func TestCreateWithAnInvalidACL(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, _ := setUp(t)
			b := client.Create().WithACL(zk.AuthACL(zk.PermAll)...) // the client is not authenticated
			wantErr(t, w.create(t, b, "/a", nil).Err, zk.ErrInvalidACL, "create", "/a")
		})
	}
}

func TestProtectedNames(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				b := client.Create().CreatingParentsIfNeeded().WithProtection()
				uuid := `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
				one := succeed(t, w.create(t, b, "/a/n", nil)).Name
				two := succeed(t, w.create(t, b, "/a/n", nil)).Name
				if one == two {
					t.Error("an id is used twice")
				}
				for _, name := range []string{one, two} {
					if !regexp.MustCompile(`^/a/_c_` + uuid + `-n$`).MatchString(name) {
						t.Errorf("name is %q", name)
					}
				}
				b = b.WithMode(builders.EphemeralSequential)
				for _, given := range []string{"/a/n", "/a/"} {
					name := succeed(t, w.create(t, b, given, nil)).Name
					want := `^/a/_c_` + uuid + `-` + regexp.QuoteMeta(given[len("/a/"):]) + `\d{10}$`
					if !regexp.MustCompile(want).MatchString(name) {
						t.Errorf("name is %q, want %s", name, want)
					}
					if _, stat := tr.read(zkpath.Join(ns, name)); stat.EphemeralOwner != client.SessionID() {
						t.Errorf("owner of %s is %x", name, stat.EphemeralOwner)
					}
				}
			}
		})
	}
}

func TestProtectedNameWithAGivenID(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, _ := setUp(t)
			id := zkpath.NewProtectionID()
			b := client.Create().WithProtectionID(id)
			want := zkpath.ProtectPath(id, "/n")
			equal(t, "name", succeed(t, w.create(t, b, "/n", nil)).Name, want)
			wantErr(t, w.create(t, b, "/n", nil).Err, zk.ErrNodeExists, "create", "/n")
		})
	}
}

func TestCreateOrSetData(t *testing.T) {
	t.Parallel()
	any := func(b builders.Create) builders.Create { return b.OrSetData() }
	version := func(v int32) func(builders.Create) builders.Create {
		return func(b builders.Create) builders.Create { return b.OrSetDataWithVersion(v) }
	}
	tests := []struct {
		name        string
		existing    int // how often it was written
		build       func(builders.Create) builders.Create
		wantErr     error
		wantVersion int32
	}{
		{"absent", 0, any, nil, 0},
		{"absent, whatever the version", 0, version(7), nil, 0},
		{"present", 1, any, nil, 1},
		{"present, that version", 3, version(2), nil, 3},
		{"present, another version", 3, version(1), zk.ErrBadVersion, 2},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					client, tr := setUp(t, framework.WithNamespace("ns"))
					for i := range tt.existing {
						_, err := client.Create().OrSetData().ForPath(testenv.Context(t), "/n", fmt.Append(nil, i))
						if err != nil {
							t.Fatal(err)
						}
					}
					var stored zk.Stat
					ev := w.create(t, tt.build(client.Create()).StoringStatIn(&stored), "/n", []byte("new"))
					data, stat := tr.read("/ns/n")
					equal(t, "version", stat.Version, tt.wantVersion)
					if tt.wantErr != nil {
						wantErr(t, ev.Err, tt.wantErr, "create", "/n")
						return
					}
					equal(t, "name", succeed(t, ev).Name, "/n")
					equal(t, "data", data, "new")
					equal(t, "stored stat", stored, stat)
				})
			}
		})
	}
}

func TestCreateIdempotent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		there   []string // what was written to the node
		wantErr error
	}{
		{"absent", nil, nil},
		{"present, as we would have left it", []string{"mine"}, nil},
		{"present with other data", []string{"other"}, zk.ErrNodeExists},
		{"present with the same data, written later", []string{"other", "mine"}, zk.ErrNodeExists},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					client, tr := setUp(t)
					for i, data := range tt.there {
						if i == 0 {
							tr.make("/n", data)
						} else if _, err := tr.conn.Set(tr.root+"/n", []byte(data), -1); err != nil {
							t.Fatal(err)
						}
					}
					var stored zk.Stat
					b := client.Create().Idempotent().CreatingParentsIfNeeded().StoringStatIn(&stored)
					ev := w.create(t, b, "/n", []byte("mine"))
					if tt.wantErr != nil {
						wantErr(t, ev.Err, tt.wantErr, "create", "/n")
						return
					}
					equal(t, "name", succeed(t, ev).Name, "/n")
					_, stat := tr.read("/n")
					equal(t, "stored stat", stored, stat)
				})
			}
		})
	}
}

func TestCreateIdempotentUnreadableNodeFails(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			tr.make("/n", "mine")
			if _, err := tr.conn.SetACL(tr.root+"/n", zk.WorldACL(zk.PermAdmin), -1); err != nil {
				t.Fatal(err)
			}
			ev := w.create(t, client.Create().Idempotent(), "/n", []byte("mine"))
			wantErr(t, ev.Err, zk.ErrNoAuth, "create", "/n")
		})
	}
}

func TestSequentialNodeWithoutANameOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				b := client.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential)
				equal(t, "first", succeed(t, w.create(t, b, "/a/", nil)).Name, "/a/0000000000")
				equal(t, "second", succeed(t, w.create(t, b, "/a/", nil)).Name, "/a/0000000001")
				equal(t, "children", tr.children(zkpath.Join(ns, "a")), []string{"0000000000", "0000000001"})
			}
		})
	}
}

// The path "/" of a sequential node stands for an empty name below the root, not for a sibling of it.
func TestSequentialNodeWithoutANameBelowTheRootOfANamespace(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t, framework.WithNamespace("ns"))
			for _, b := range []builders.Create{client.Create(), client.Create().WithProtection()} {
				name := succeed(t, w.create(t, b.WithMode(builders.PersistentSequential), "/", nil)).Name
				if !tr.exists("/ns" + name) {
					t.Errorf("no node /ns%s; there are %q", name, tr.children("/"))
				}
			}
			equal(t, "nodes beside the namespace", tr.children("/"), []string{"ns"})
		})
	}
}

func TestDefaultData(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		opts  []framework.Option
		given []byte
		want  string
	}{
		{"nil is the default", []framework.Option{framework.WithDefaultData([]byte("default"))}, nil, "default"},
		{"nothing is nothing", []framework.Option{framework.WithDefaultData([]byte("default"))}, []byte{}, ""},
		{"the default is empty", []framework.Option{framework.WithDefaultData([]byte{})}, nil, ""},
		{"the default is nil", []framework.Option{framework.WithDefaultData(nil)}, nil, ""},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					client, tr := setUp(t, tt.opts...)
					succeed(t, w.create(t, client.Create(), "/created", tt.given))
					tr.make("/set", "before")
					succeed(t, w.setData(t, client.SetData(), "/set", tt.given))
					tr.make("/both", "before")
					succeed(t, w.create(t, client.Create().OrSetData(), "/both", tt.given))
					tr.make("/in-transaction", "before")
					op := client.TransactionOp()
					succeed(t, w.transaction(t, client.Transaction(),
						op.Create().ForPath("/created-in-transaction", tt.given),
						op.SetData().ForPath("/in-transaction", tt.given),
					))
					for _, p := range tr.children("/") {
						data, _ := tr.read("/" + p)
						equal(t, "data of "+p, data, tt.want)
					}
				})
			}
		})
	}
}

func TestDefaultDataIsTheAddressOfThisHost(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	succeed(t, foreground.create(t, client.Create(), "/n", nil))
	if data, _ := tr.read("/n"); !regexp.MustCompile(`^[0-9a-f:.]*$`).MatchString(data) {
		t.Errorf("data is %q", data)
	}
}

func TestCreateSubmitted(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	ctx := testenv.Context(t)
	b := client.Create().CreatingParentsIfNeeded()
	var stored zk.Stat
	one := b.StoringStatIn(&stored).Submit(ctx, "/a/b", []byte("one"))
	two := b.Submit(ctx, "/a/b", nil)
	three := b.Submit(ctx, "a", nil)
	name, err := one.Wait(ctx)
	if err != nil || name != "/a/b" {
		t.Errorf("Wait = %q, %v", name, err)
	}
	_, stat := tr.read("/a/b")
	equal(t, "stored stat", stored, stat)
	_, err = two.Wait(ctx)
	wantErr(t, err, zk.ErrNodeExists, "create", "/a/b")
	_, err = three.Wait(ctx)
	wantErr(t, err, zk.ErrInvalidPath, "create", "a")
}

func TestCreateModePredicates(t *testing.T) {
	t.Parallel()
	type facts struct {
		Name                       string
		Ephemeral, Sequential, TTL bool
	}
	got := make(map[builders.CreateMode]facts)
	for m := builders.Persistent - 1; m <= builders.PersistentSequentialWithTTL+1; m++ {
		got[m] = facts{m.String(), m.IsEphemeral(), m.IsSequential(), m.HasTTL()}
	}
	equal(t, "modes", got, map[builders.CreateMode]facts{
		-1:                                   {Name: "UNKNOWN"},
		builders.Persistent:                  {Name: "PERSISTENT"},
		builders.Ephemeral:                   {Name: "EPHEMERAL", Ephemeral: true},
		builders.PersistentSequential:        {Name: "PERSISTENT_SEQUENTIAL", Sequential: true},
		builders.EphemeralSequential:         {Name: "EPHEMERAL_SEQUENTIAL", Ephemeral: true, Sequential: true},
		builders.Container:                   {Name: "CONTAINER"},
		builders.PersistentWithTTL:           {Name: "PERSISTENT_WITH_TTL", TTL: true},
		builders.PersistentSequentialWithTTL: {Name: "PERSISTENT_SEQUENTIAL_WITH_TTL", Sequential: true, TTL: true},
		7:                                    {Name: "UNKNOWN"},
	})
}

func TestOpErrorHasNumberOfAttempts(t *testing.T) {
	t.Parallel()
	client, _ := setUp(t)
	var opErr *builders.OpError
	if err := client.Delete().ForPath(testenv.Context(t), "/none"); !errors.As(err, &opErr) {
		t.Fatal(err)
	}
	equal(t, "error", *opErr, builders.OpError{Op: "delete", Path: "/none", Attempts: 1, Err: zk.ErrNoNode},
		sameError)
	equal(t, "text", opErr.Error(), "curator: delete /none: node does not exist")
	equal(t, "type", opErr.ErrorType(), "NONODE")
}

func TestOpErrorNamesTheKindOfItsCause(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"NONODE":            zk.ErrNoNode,
		"CONNECTIONLOSS":    framework.ErrConnectionLoss,
		"SESSIONEXPIRED":    zk.ErrSessionExpired,
		"DATAINCONSISTENCY": fmt.Errorf("%w: no gzip", framework.ErrDataInconsistency),
		"canceled":          context.Canceled,
		"deadline_exceeded": fmt.Errorf("at last: %w", context.DeadlineExceeded),
		"_OTHER":            errors.New("something else"),
	} {
		equal(t, "kind", (&builders.OpError{Op: "create", Err: err}).ErrorType(), want)
	}
	err := &builders.OpError{Op: "multi", Attempts: 2, Err: zk.ErrNoNode}
	equal(t, "text", err.Error(), "curator: multi (2 attempts): node does not exist")
}
