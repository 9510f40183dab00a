package builders

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/opconfig"
)

// A fixed ACL needs no asking, and takes no memory of an operation.
func TestFixedACLDoesNotCallProvider(t *testing.T) {
	env := &environment{
		Config: &opconfig.Config{ACL: FixedACL(zk.WorldACL(zk.PermRead))}, namespace: newNamespace("ns"),
	}
	allocations := testing.AllocsPerRun(100, func() {
		answers, err := env.resolve(nil, "/ns/b/c/d")
		if err == nil {
			answers, err = env.resolveTree(answers, "/ns/b/c")
		}
		if answers != nil || err != nil {
			t.Fatalf("answers: %v, %v", answers, err)
		}
		if acl := env.aclOf("/a", nil, answers); len(acl) != 1 || acl[0].Perms != zk.PermRead {
			t.Fatalf("ACL %v", acl)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}
