package interop_test

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/zkpath"
)

// hexOf returns bytes as the peer takes them.
func hexOf(data string) string { return hex.EncodeToString([]byte(data)) }

func TestGroupMembersOfJavaAndGo(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	const group = "/workers/group"
	ours := nodes.NewGroupMember(client, group, "go", nil) // Java's reader throws at a node without data
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	j.must("groupMemberNew", interop.Args{"name": "m", "path": group, "member": "java", "data": hexOf("j")}, nil)
	want := func(payloads map[string]string) {
		t.Helper()
		hexes, bytes := map[string]string{}, map[string][]byte{}
		for id, payload := range payloads {
			hexes[id], bytes[id] = hexOf(payload), []byte(payload)
		}
		testenv.Eventually(t, func() bool {
			var theirs map[string]string
			j.must("groupMemberCurrent", interop.Args{"name": "m"}, &theirs)
			return cmp.Equal(theirs, hexes) && cmp.Equal(ours.CurrentMembers(), bytes)
		}, fmt.Sprint(payloads))
	}
	want(map[string]string{"go": "", "java": "j"})
	if err := ours.SetThisData(ctx, []byte("g")); err != nil {
		t.Fatal(err)
	}
	j.must("groupMemberSetData", interop.Args{"name": "m", "data": hexOf("k")}, nil)
	want(map[string]string{"go": "g", "java": "k"})
	if err := ours.Close(ctx); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool {
		var theirs map[string]string
		j.must("groupMemberCurrent", interop.Args{"name": "m"}, &theirs)
		return cmp.Equal(theirs, map[string]string{"java": hexOf("k")})
	}, "the member of Go has left")
}

func TestPersistentNodeHasJavasNames(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	for i, mode := range []builders.CreateMode{
		builders.Ephemeral, builders.Persistent, builders.EphemeralSequential, builders.PersistentSequential,
	} {
		for _, protected := range []bool{false, true} {
			var opts []nodes.NodeOption
			if protected {
				opts = append(opts, nodes.WithProtection())
			}
			ours := nodes.NewPersistentNode(client, fmt.Sprintf("/kept/go-%d-", i), mode, []byte("go"), opts...)
			if err := ours.Start(); err != nil {
				t.Fatal(err)
			}
			if err := ours.WaitForInitialCreate(ctx); err != nil {
				t.Fatal(err)
			}
			var theirs string
			j.must("persistentNodeNew", interop.Args{
				"name": fmt.Sprint("n", i, protected), "path": fmt.Sprintf("/kept/go-%d-", i) + "j", "mode": mode.String(),
				"protection": protected, "data": hexOf("java"),
			}, &theirs)
			shape := func(path string) (name string, isProtected bool) {
				name = zkpath.Node(path)
				isProtected = zkpath.IsProtected(name)
				return zkpath.Normalize(name), isProtected
			}
			ourName, ourProtection := shape(ours.ActualPath())
			theirName, theirProtection := shape(theirs)
			if ourProtection != theirProtection || len(ourName)+1 != len(theirName) || zkpath.Parent(theirs) != "/kept" {
				t.Errorf("%v: ours is %s, Java's %s", mode, ours.ActualPath(), theirs)
			}
			for _, path := range []string{ours.ActualPath(), theirs} {
				var stat zk.Stat
				if _, err := client.GetData().StoringStatIn(&stat).ForPath(ctx, path); err != nil ||
					(stat.EphemeralOwner != 0) != mode.IsEphemeral() {
					t.Errorf("%s: %+v, %v", path, stat, err)
				}
			}
			if err := ours.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	}
}

// Java keeps the node; ours waits behind it, and takes its place when Java closes.
func TestPersistentNodeWaitsBehindJavas(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	j.must("persistentNodeNew", interop.Args{
		"name": "n", "path": "/kept/one", "mode": "EPHEMERAL", "data": hexOf("java"),
	}, nil)
	ours := nodes.NewPersistentNode(client, "/kept/one", builders.Ephemeral, []byte("go"))
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return ours.Err() != nil }, "reported")
	if data, err := client.GetData().ForPath(ctx, "/kept/one"); err != nil || string(data) != "java" {
		t.Errorf("%s, %v", data, err)
	}
	j.must("persistentNodeClose", interop.Args{"name": "n"}, nil)
	if err := ours.WaitForInitialCreate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ours.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// Java and Go keep one node with a TTL, and have the same nodes.
func TestPersistentTTLNodeOfJavaAndGo(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	ours := nodes.NewPersistentTTLNode(client, "/tasks/one", time.Second, []byte("one"))
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	if err := ours.WaitForInitialCreate(ctx); err != nil {
		t.Fatal(err)
	}
	j.must("persistentTtlNodeNew", interop.Args{
		"name": "n", "path": "/tasks/one", "ttlMs": 1000, "data": hexOf("one"),
	}, nil)
	j.must("persistentTtlNodeNew", interop.Args{
		"name": "javas", "path": "/tasks/two", "ttlMs": 1000, "data": hexOf("two"),
	}, nil)
	owner := func(path string) int64 {
		var stat zk.Stat
		testenv.Eventually(t, func() bool {
			_, err := client.GetData().StoringStatIn(&stat).ForPath(ctx, path)
			return err == nil
		}, path)
		return stat.EphemeralOwner // the kind of node
	}
	if owner("/tasks/one/touch") != owner("/tasks/two/touch") || owner("/tasks/one") != owner("/tasks/two") {
		t.Error("the nodes are of other kinds than Java's")
	}
	if err := ours.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
