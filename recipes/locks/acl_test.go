package locks_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

// ofPath is a provider of an ACL for one path, and of another for all the others.
type ofPath struct {
	path      string
	acl, rest []zk.ACL
}

func (p ofPath) DefaultACL() []zk.ACL { return p.rest }

func (p ofPath) ACLForPath(path string) []zk.ACL {
	if path == p.path {
		return p.acl
	}
	return p.rest
}

// In Java: TestLockACLs.testLockACLs, TestLockACLs.testACLsCreatingParents.
func TestMutexNodesHaveClientACL(t *testing.T) {
	ctx := testenv.Context(t)
	provider := ofPath{
		path: "/ns/locks",
		acl:  []zk.ACL{{Perms: zk.PermCreate | zk.PermRead | zk.PermDelete, Scheme: "ip", ID: "127.0.0.1"}},
		rest: []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "127.0.0.1"}},
	}
	client := newClient(t, testenv.ConnectString(t), framework.WithNamespace("ns"), framework.WithACLProvider(provider))
	for name, lock := range map[string]locks.InterProcessLock{
		"mutex":           locks.NewInterProcessMutex(client, lockPath),
		"read lock":       locks.NewInterProcessReadWriteLock(client, "/locks/documents").ReadLock(),
		"write lock":      locks.NewInterProcessReadWriteLock(client, "/locks/letters").WriteLock(),
		"semaphore mutex": locks.NewInterProcessSemaphoreMutex(client, "/locks/places"),
	} {
		hold := acquire(t, ctx, lock)
		for _, path := range []string{hold.Path(), zkpath.Parent(hold.Path()), "/locks"} {
			want := provider.ACLForPath("/ns" + path)
			acl, err := client.GetACL().ForPath(ctx, path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, acl); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, path, diff)
			}
		}
		release(t, hold)
	}
}
