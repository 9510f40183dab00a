package builders_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestMultiReadHasAResultForEachRead(t *testing.T) {
	t.Parallel()
	client := newClient(t, testenv.ConnectString(t)).UsingNamespace("ns")
	ctx := testenv.Context(t)
	for path, data := range map[string]string{"/a": "1", "/b": "2"} {
		if _, err := client.Create().ForPath(ctx, path, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Create().Compressed().ForPath(ctx, "/packed", []byte("3")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create().WithACL(zk.DigestACL(zk.PermAll, "u", "p")...).ForPath(ctx, "/secret", nil); err != nil {
		t.Fatal(err)
	}
	reads := []builders.Read{
		{Path: "/a"}, {Path: "/none"}, {Path: "/", Children: true}, {Path: "/secret"}, {Path: "/b"}, {Path: "/packed"},
	}
	check := func(results []callbacks.ReadResult) {
		t.Helper()
		if len(results) != len(reads) {
			t.Fatalf("%d results", len(results))
		}
		if r := results[0]; r.Err != nil || r.Path != "/a" || string(r.Data) != "1" || r.Stat.DataLength != 1 {
			t.Errorf("got %+v", r)
		}
		if r := results[1]; !errors.Is(r.Err, zk.ErrNoNode) {
			t.Errorf("got %+v", r)
		}
		slices.Sort(results[2].Children)
		if r := results[2]; r.Err != nil || !slices.Equal(r.Children, []string{"a", "b", "packed", "secret"}) {
			t.Errorf("got %+v", r)
		}
		var op *framework.OpError
		if r := results[3]; !errors.Is(r.Err, zk.ErrNoAuth) || !errors.As(r.Err, &op) || op.Op != "getData" ||
			op.Path != "/secret" {
			t.Errorf("got %+v", r)
		}
		if r := results[4]; r.Err != nil || string(r.Data) != "2" {
			t.Errorf("got %+v", r)
		}
	}
	results, err := client.MultiRead().Undecompressed().ForReads(ctx, reads...)
	if err != nil {
		t.Fatal(err)
	}
	check(results)
	if r := results[5]; r.Err != nil || string(r.Data) == "3" {
		t.Errorf("got %+v", r)
	}
	background := make(chan callbacks.Event, 1)
	err = client.MultiRead().Decompressed().InBackground(func(_ context.Context, ev callbacks.Event) { background <- ev }).
		ForReads(ctx, reads[5], reads[0])
	if err != nil {
		t.Fatal(err)
	}
	ev := <-background
	if ev.Err != nil || ev.Type != callbacks.MultiRead || len(ev.Reads) != 2 {
		t.Fatalf("got %+v", ev)
	}
	if r := ev.Reads[0]; r.Err != nil || string(r.Data) != "3" {
		t.Errorf("got %+v", r)
	}
	if r := ev.Reads[1]; !errors.Is(r.Err, framework.ErrDataInconsistency) || string(r.Data) != "1" {
		t.Errorf("what does not decompress: %+v", r)
	}
}

func TestMultiReadRefusesBadArguments(t *testing.T) {
	t.Parallel()
	client := newClient(t, testenv.ConnectString(t))
	ctx := testenv.Context(t)
	if _, err := client.MultiRead().ForReads(ctx); !errors.Is(err, builders.ErrBadArguments) {
		t.Errorf("no reads: %v", err)
	}
	if _, err := client.MultiRead().ForReads(ctx, builders.Read{Path: "no path"}); err == nil {
		t.Error("a bad path is accepted")
	}
	if err := client.MultiRead().InBackground(nil).ForReads(ctx, builders.Read{Path: "/a"}, builders.Read{}); err == nil {
		t.Error("a bad path is accepted in the background")
	}
}
