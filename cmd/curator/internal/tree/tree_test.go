package tree

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// grow creates /t with children that have data, and one with a child, and returns the paths in their order.
func grow(t *testing.T, client *framework.Client, children int, data []byte) []string {
	t.Helper()
	paths := []string{"/t"}
	for i := range children {
		paths = append(paths, fmt.Sprintf("/t/n%04d", i))
	}
	paths = append(paths, "/t/z", "/t/z/child")
	for _, p := range paths {
		_, err := client.Create().CreatingParentsIfNeeded().ForPath(t.Context(), p, data)
		testclient.Must(t, err)
	}
	return paths
}

// TestReadFindsAll is about answers that are too large, servers that do not know the request, and neither.
func TestReadFindsAll(t *testing.T) {
	for name, test := range map[string]struct {
		opts []framework.Option
		rule *curatortest.Rule
	}{
		"plain":     {},
		"too large": {opts: []framework.Option{framework.WithMaxReply(4000)}},
		"old server": {rule: &curatortest.Rule{
			Ops: []string{"multiRead"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := curatortest.NewServerT(t)
			client := testclient.Connect(t, server.ConnectString(), test.opts...)
			data := bytes.Repeat([]byte("x"), 100)
			paths := grow(t, client, 300, data)
			if test.rule != nil {
				server.Faults().Add(*test.rule)
			}
			for _, withData := range []bool{true, false} {
				got, err := Read(t.Context(), client, "/t", Options{Data: withData, Depth: -1})
				testclient.Must(t, err)
				if diff := cmp.Diff(paths, got.Paths()); diff != "" {
					t.Errorf("paths with data %v (-want +got):\n%s", withData, diff)
				}
				for _, n := range got {
					if n.Stat == nil || n.Err != nil || bytes.Equal(n.Data, data) != withData {
						t.Errorf("with data %v: %+v", withData, n)
					}
				}
			}
		})
	}
}

func TestReadLeavesOutWhatVanishes(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	grow(t, client, 3, nil)
	held := server.Faults().Add(curatortest.Rule{
		Ops: []string{"multiRead"}, Path: "/t/n0001", Action: curatortest.HoldRequest, Count: 1,
	})
	done := make(chan Tree)
	go func() {
		got, err := Read(t.Context(), client, "/t", Options{Data: true, Depth: -1})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	testclient.Must(t, held.Wait(testenv.Context(t)))
	other := testclient.Connect(t, server.ConnectString())
	testclient.Must(t, other.Delete().ForPath(t.Context(), "/t/n0001"))
	held.Release()
	got := <-done
	want := []string{"/t", "/t/n0000", "/t/n0002", "/t/z", "/t/z/child"}
	if diff := cmp.Diff(want, got.Paths()); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"n0000", "n0002", "z"}, got["/t"].Children); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}

func TestReadGivesTheStatOfAnUnreadableNode(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	grow(t, client, 1, []byte("x"))
	acl, err := client.GetACL().ForPath(t.Context(), "/t/z")
	testclient.Must(t, err)
	acl[0].Perms = 1 << 4 // to manage alone
	_, err = client.SetACL().WithACL(acl...).ForPath(t.Context(), "/t/z")
	testclient.Must(t, err)
	for _, withData := range []bool{true, false} {
		got, err := Read(t.Context(), client, "/t", Options{Data: withData, Depth: -1})
		testclient.Must(t, err)
		if n := got["/t/z"]; n.Err == nil || n.Stat == nil || n.Stat.NumChildren != 1 || len(n.Children) != 0 {
			t.Errorf("with data %v: %+v", withData, n)
		}
		if got["/t/n0000"].Err != nil {
			t.Errorf("with data %v: %+v", withData, got["/t/n0000"])
		}
	}
}
