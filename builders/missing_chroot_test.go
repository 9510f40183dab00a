package builders_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// creations are calls that create missing parents of /a/b.
var creations = map[string]func(ctx context.Context, client *framework.Client) error{
	"create": func(ctx context.Context, client *framework.Client) error {
		_, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/a/b", nil)
		return err
	},
	"protected": func(ctx context.Context, client *framework.Client) error {
		_, err := client.Create().CreatingParentContainersIfNeeded().WithProtection().ForPath(ctx, "/a/b", nil)
		return err
	},
	"containers": func(ctx context.Context, client *framework.Client) error {
		return client.CreateContainers(ctx, "/a/b")
	},
	"path": func(ctx context.Context, client *framework.Client) error { return client.EnsurePath(ctx, "/a/b") },
	"exists": func(ctx context.Context, client *framework.Client) error {
		_, err := client.CheckExists().CreatingParentsIfNeeded().ForPath(ctx, "/a/b")
		return err
	},
}

// Another client changes the tree while an answer to the call under test is on its way. An answer that was true then
// names no chroot that exists now.
func TestNodeThatIsMissingWhileTheTreeChangesNamesTheRightOne(t *testing.T) {
	t.Parallel()
	creates := []string{"create2", "createContainer"}
	remake := func(t *testing.T, tr tree) { tr.make("/lost", "") }
	for name, create := range creations {
		for _, tt := range []struct {
			name   string
			before []string
			hold   curatortest.Rule
			change func(t *testing.T, tr tree)
			want   error
		}{
			{
				"chroot made behind the first answer", nil,
				curatortest.Rule{Action: curatortest.HoldReply, Count: 1},
				remake, nil,
			},
			{
				"chroot made behind the answer to a parent", nil,
				curatortest.Rule{Action: curatortest.HoldReply, Ops: creates, Path: "/**/lost/a", Count: 1},
				remake, nil,
			},
			{
				"parent deleted",
				[]string{"/lost", "/lost/a"},
				curatortest.Rule{Action: curatortest.HoldRequest, Count: 1},
				func(t *testing.T, tr tree) { tr.remove("/lost/a") }, nil,
			},
			{
				"chroot deleted",
				[]string{"/lost"},
				curatortest.Rule{Action: curatortest.HoldRequest, Ops: creates, Path: "/**/lost/a", Count: 1},
				func(t *testing.T, tr tree) { tr.remove("/lost") }, framework.ErrNoChroot,
			},
			{
				"chroot deleted and made again",
				[]string{"/lost", "/lost/a"},
				curatortest.Rule{Action: curatortest.HoldRequest, Count: 1},
				func(t *testing.T, tr tree) { tr.remove("/lost/a"); tr.remove("/lost"); tr.make("/lost", "") }, nil,
			},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				t.Parallel()
				tr := newTree(t)
				for _, path := range tt.before {
					tr.make(path, "")
				}
				proxy := curatortest.NewProxyT(t, testenv.Addr(t))
				client := newClient(t, proxy.ConnectString()+tr.root+"/lost")
				held := proxy.Faults().Add(tt.hold)
				done := make(chan error, 1)
				go func() { done <- create(testenv.Context(t), client) }()
				if err := held.Wait(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
				tt.change(t, tr)
				held.Remove()
				if err := <-done; !errors.Is(err, tt.want) {
					t.Errorf("error is %v, want %v", err, tt.want)
				}
			})
		}
	}
}

// Another client deletes a node of the first level, again and again.
func TestNodeOfFirstLevelThatIsDeletedNamesNoChroot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused []string // these requests find no node, whatever the server has
		build   func(builders.Create) builders.Create
	}{
		"plain":      {[]string{"create2"}, func(b builders.Create) builders.Create { return b }},
		"parents":    {[]string{"create2"}, builders.Create.CreatingParentsIfNeeded},
		"protected":  {[]string{"create2"}, builders.Create.WithProtection},
		"or set":     {[]string{"setData"}, builders.Create.OrSetData},
		"idempotent": {[]string{"getData"}, builders.Create.Idempotent},
	} {
		for _, w := range ways {
			t.Run(fmt.Sprint(name, " ", w), func(t *testing.T) {
				t.Parallel()
				client, tr, proxy := setUpProxied(t)
				if tt.refused[0] != "create2" {
					tr.make("/n", "")
				}
				proxy.Faults().Add(curatortest.Rule{Ops: tt.refused, Action: curatortest.ReplyError, Err: zk.ErrNoNode})
				err := w.create(t, tt.build(client.Create()), "/n", []byte("x")).Err
				if !errors.Is(err, zk.ErrNoNode) || errors.Is(err, framework.ErrNoChroot) {
					t.Errorf("error is %v", err)
				}
			})
		}
	}
}

// The nodes of a namespace are created when the chroot is there.
func TestNamespaceInChrootThatIsCreatedLaterIsCreated(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	client := newClient(t, tr.connect+"/lost", framework.WithNamespace("ns"))
	for range 2 {
		if _, err := client.GetChildren().ForPath(testenv.Context(t), "/"); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("error is %v", err)
		}
	}
	tr.make("/lost", "")
	if _, err := client.GetChildren().ForPath(testenv.Context(t), "/"); err != nil {
		t.Error(err)
	}
}

// The exists of the root with parents creates nothing, and asks no ACLProvider.
func TestCheckExistsOfRootWithParentsNamesMissingChroot(t *testing.T) {
	t.Parallel()
	acl := aclFunc(func(path string) []zk.ACL { t.Errorf("ACL of %s", path); return nil })
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			tr := newTree(t)
			client := newClient(t, tr.connect+"/lost", framework.WithACLProvider(acl))
			exists := client.CheckExists().CreatingParentsIfNeeded()
			if err := w.exists(t, exists, "/").Err; !errors.Is(err, framework.ErrNoChroot) {
				t.Errorf("error is %v", err)
			}
			if ev := w.exists(t, client.CheckExists(), "/"); ev.Err != nil || ev.Stat != nil {
				t.Errorf("without parents: %v, %v", ev.Stat, ev.Err)
			}
			tr.make("/lost", "")
			if ev := w.exists(t, exists, "/"); ev.Err != nil || ev.Stat == nil {
				t.Errorf("got %v, %v", ev.Stat, ev.Err)
			}
			if created := tr.children("/lost"); len(created) > 0 {
				t.Errorf("created %v", created)
			}
		})
	}
}
