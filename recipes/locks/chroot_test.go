package locks_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// The clients of a multi lock have different chroots of one ensemble. Each client's namespace is "ns".
func TestMultiLockOfDifferentChrootsFencesWrites(t *testing.T) {
	for name, chroots := range map[string][2]string{
		"beside each other":            {"/one", "/two"},
		"a name of the same beginning": {"/one", "/one-more"},
		"the first one deeper":         {"/one/deep", "/one"},
		"the last one deeper":          {"/one", "/one/deep"},
		"the first without":            {"", "/one"},
		"the last without":             {"/one", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testenv.Context(t)
			base := testenv.Chroot(t)
			admin := newClient(t, testenv.Addr(t)+base)
			var clients [2]*framework.Client
			for i, chroot := range chroots {
				if chroot != "" {
					if err := admin.CreateContainers(ctx, chroot); err != nil {
						t.Fatal(err)
					}
				}
				clients[i] = newClient(t, testenv.Addr(t)+base+chroot, framework.WithNamespace("ns"))
			}
			client := clients[0]
			if _, err := client.Create().ForPath(ctx, "/data", []byte("old")); err != nil {
				t.Fatal(err)
			}
			var parts []locks.InterProcessLock
			for i, path := range []string{"/first", "/last"} {
				parts = append(parts, locks.NewInterProcessMutex(clients[i], path))
			}
			hold := acquire(t, ctx, locks.NewInterProcessMultiLock(parts...))
			last, err := parts[1].(*locks.InterProcessMutex).ParticipantNodes(ctx)
			if err != nil || len(last) != 1 {
				t.Fatal(last, err)
			}
			node := last[0]
			for name, write := range writes {
				if err := write(ctx, client, hold); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := clients[1].Delete().ForPath(ctx, node); err != nil {
				t.Fatal(err)
			}
			data := []byte("written by nobody")
			op := client.TransactionOp().SetData().ForPath("/data", data)
			_, err = client.Transaction().ForOperations(ctx, hold.Fence(), op)
			if want := "curator: multi: op 0 check /ns" + node + ": locks: lock lost"; !errors.Is(err, locks.ErrLockLost) ||
				err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			if got, err := client.GetData().ForPath(ctx, "/data"); err != nil || string(got) == string(data) {
				t.Errorf("written: %s, error %v", got, err)
			}
			if err := hold.Release(ctx); err != nil && !errors.Is(err, zk.ErrNoNode) {
				t.Error(err)
			}
		})
	}
}

// The lock's client and the client of the transaction have different chroots.
func TestFenceInTransactionOfAnotherChrootIsChecked(t *testing.T) {
	ctx := testenv.Context(t)
	base := testenv.Chroot(t)
	admin := newClient(t, testenv.Addr(t)+base)
	for _, chroot := range []string{"/one", "/two"} {
		if err := admin.CreateContainers(ctx, chroot); err != nil {
			t.Fatal(err)
		}
	}
	hold := acquire(t, ctx, locks.NewInterProcessMutex(newClient(t, testenv.Addr(t)+base+"/one"), lockPath))
	other := newClient(t, testenv.Addr(t)+base+"/two")
	create := other.TransactionOp().Create().ForPath("/data", nil)
	if _, err := other.Transaction().ForOperations(ctx, hold.Fence(), create); err != nil {
		t.Error(err)
	}
	release(t, hold)
	remove := other.TransactionOp().Delete().ForPath("/data")
	if _, err := other.Transaction().ForOperations(ctx, hold.Fence(), remove); !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("got %v", err)
	}
}
