package interop_test

import (
	"bytes"
	"context"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/zkpath"
)

// startGo returns a client of ours on the nodes of a Java client. Its session is as long as that of [peer.start].
func startGo(t *testing.T, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append([]framework.Option{framework.WithSessionTimeout(20 * time.Second)}, opts...)
	client, err := framework.New(connect, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// startBoth returns a Java client and one of ours on the same nodes.
func startBoth(t *testing.T) (*peer, *framework.Client) {
	t.Helper()
	connect := testenv.ConnectString(t)
	j := startJava(t)
	j.start("", connect)
	return j, startGo(t, connect)
}

func TestProtectedNamesAreJavas(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	for _, mode := range []builders.CreateMode{
		builders.Persistent, builders.Ephemeral, builders.PersistentSequential, builders.EphemeralSequential,
	} {
		foreground, err := client.Create().WithProtection().WithMode(mode).ForPath(ctx, "/n-", nil)
		if err != nil {
			t.Fatal(err)
		}
		background := make(chan string, 1)
		if err := client.Create().WithProtection().WithMode(mode).InBackground(nameTo(background)).
			ForPath(ctx, "/n-", nil); err != nil {
			t.Fatal(err)
		}
		theirs := j.text("create", interop.Args{"path": "/n-", "mode": mode.String(), "protection": true})
		for _, created := range []string{foreground, <-background, theirs} {
			name := path.Base(created)
			if !j.truth("isProtected", interop.Args{"name": name}) || !zkpath.IsProtected(name) {
				t.Errorf("%v: %s is not protected for both", mode, name)
			}
			if java, ours := j.text("normalize", interop.Args{"name": name}), zkpath.Normalize(name); java != ours {
				t.Errorf("%v: normalized %s by Java, %s by us", mode, java, ours)
			}
		}
	}
}

func TestDataIsReadByBoth(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	for _, data := range [][]byte{{}, []byte("hello"), bytes.Repeat([]byte("curator "), 20_000)} {
		for _, compressed := range []bool{false, true} {
			create := client.Create().Uncompressed()
			if compressed {
				create = create.Compressed()
			}
			ours, err := create.WithMode(builders.PersistentSequential).ForPath(ctx, "/d-", data)
			if err != nil {
				t.Fatal(err)
			}
			var got interop.NodeData
			j.must("getData", interop.Args{"path": ours, "compressed": compressed}, &got)
			if !bytes.Equal(got.Data, data) {
				t.Errorf("compressed %v: Java reads %d bytes of %d", compressed, len(got.Data), len(data))
			}
			theirs := j.text("create", interop.Args{
				"path": "/d-", "mode": "PERSISTENT_SEQUENTIAL", "data": interop.Bytes(data), "compressed": compressed,
			})
			get := client.GetData().Undecompressed()
			if compressed {
				get = get.Decompressed()
			}
			if read, err := get.ForPath(ctx, theirs); err != nil || !bytes.Equal(read, data) {
				t.Errorf("compressed %v: we read %d bytes of %d: %v", compressed, len(read), len(data), err)
			}
		}
	}
	// What is written for no data is the same on one machine.
	ours, err := client.Create().ForPath(ctx, "/default-go", nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := j.text("create", interop.Args{"path": "/default-java"})
	a, err := client.GetData().ForPath(ctx, ours)
	if err != nil {
		t.Fatal(err)
	}
	b, err := client.GetData().ForPath(ctx, theirs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(a)); diff != "" {
		t.Errorf("default data of Java and ours differ:\n%s", diff)
	}
}

func TestNamespaceIsTheSameTree(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	j := startJava(t)
	j.must("start", interop.Args{"connect": connect, "namespace": "my/ns", "sessionTimeoutMs": 4000}, nil)
	client := startGo(t, connect, framework.WithNamespace("my/ns"))
	if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/a/b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	var got interop.NodeData
	j.must("getData", interop.Args{"path": "/a/b"}, &got)
	if string(got.Data) != "x" {
		t.Errorf("Java reads %q", got.Data)
	}
	if err := client.Delete().DeletingChildrenIfNeeded().ForPath(ctx, "/a"); err != nil {
		t.Fatal(err)
	}
}

// nameTo sends the name of the node that was created.
func nameTo(ch chan<- string) callbacks.BackgroundCallback {
	return func(_ context.Context, ev callbacks.Event) { ch <- ev.Name }
}
