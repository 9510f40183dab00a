package builders_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestGetEphemerals(t *testing.T) {
	t.Parallel()
	whole := newClient(t, testenv.ConnectString(t))
	ctx := testenv.Context(t)
	for _, path := range []string{"/ns/a", "/ns/ab", "/ns/b", "/nsx/a", "/top"} {
		_, err := whole.Create().CreatingParentsIfNeeded().WithMode(builders.Ephemeral).ForPath(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := whole.Create().ForPath(ctx, "/ns/persistent", nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		namespace, prefix string
		want              []string
	}{
		{"", "/", []string{"/ns/a", "/ns/ab", "/ns/b", "/nsx/a", "/top"}},
		{"", "/ns", []string{"/ns/a", "/ns/ab", "/ns/b", "/nsx/a"}},
		{"", "/none", []string{}},
		{"ns", "/", []string{"/a", "/ab", "/b"}},
		{"ns", "/a", []string{"/a", "/ab"}},
	} {
		client := whole.UsingNamespace(tt.namespace)
		got, err := client.GetEphemerals().ForPath(ctx, tt.prefix)
		slices.Sort(got)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%q %s: %v (-want +got):\n%s", tt.namespace, tt.prefix, err, diff)
		}
		ev := succeed(t, awaitPath(t, callbacks.GetEphemerals, client.GetEphemerals().InBackground, tt.prefix))
		slices.Sort(ev.Children)
		if diff := cmp.Diff(tt.want, ev.Children); diff != "" {
			t.Errorf("%q %s in the background (-want +got):\n%s", tt.namespace, tt.prefix, diff)
		}
	}
	other := newClient(t, testenv.ConnectString(t))
	if got, err := other.GetEphemerals().ForPath(ctx, "/"); len(got) > 0 || err != nil {
		t.Errorf("another session has %v, %v", got, err)
	}
	if _, err := whole.GetEphemerals().ForPath(ctx, "no path"); !errors.Is(err, zk.ErrInvalidPath) {
		t.Errorf("a bad path: %v", err)
	}
}

func TestGetAllChildrenNumber(t *testing.T) {
	t.Parallel()
	client := newClient(t, testenv.ConnectString(t)).UsingNamespace("ns")
	ctx := testenv.Context(t)
	for _, path := range []string{"/a/b/c", "/a/d", "/ab"} {
		if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, path, nil); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int{"/": 5, "/a": 3, "/a/b": 1, "/ab": 0} {
		if got, err := client.GetAllChildrenNumber().ForPath(ctx, path); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", path, got, err, want)
		}
		ev := succeed(t, awaitPath(t, callbacks.GetAllChildrenNumber, client.GetAllChildrenNumber().InBackground, path))
		if ev.Count != want {
			t.Errorf("%s in the background: %d, want %d", path, ev.Count, want)
		}
	}
	var op *framework.OpError
	_, err := client.GetAllChildrenNumber().ForPath(ctx, "/none")
	if !errors.Is(err, zk.ErrNoNode) || !errors.As(err, &op) || op.Op != "getAllChildrenNumber" || op.Path != "/none" {
		t.Errorf("the error is %v", err)
	}
	if _, err := client.GetAllChildrenNumber().ForPath(ctx, "no path"); !errors.Is(err, zk.ErrInvalidPath) {
		t.Errorf("a bad path: %v", err)
	}
}
