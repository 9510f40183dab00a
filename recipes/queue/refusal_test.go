package queue_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
)

// nodeOf returns what a node with one item holds.
func nodeOf(item string) []byte {
	data := []byte{0, 1, 0, 1, 1}
	data = binary.BigEndian.AppendUint32(data, uint32(len(item)))
	return append(append(data, item...), 2)
}

// TestRefusalThatPassesDelaysAnItemOnly refuses to read, to lock or to delete an item for a while.
func TestRefusalThatPassesDelaysAnItemOnly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		node  string // whose permissions change, "" for that of the item
		perms int32
		only  func(mode modifier) bool
	}{
		"to read":   {"", zk.PermAll &^ zk.PermRead, func(modifier) bool { return true }},
		"to delete": {queuePath, zk.PermAll &^ zk.PermDelete, func(m modifier) bool { return !isLossless(m) }},
		"to lock":   {lockPath, zk.PermAll &^ zk.PermCreate, isLossless},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachMode(t, func(t *testing.T, mode modifier) {
				if !tt.only(mode) {
					return
				}
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					ctx, client := testenv.Context(t), clientAt(t, place, chroot)
					got, errs := newBasket(t), newReports()
					q := start(t, built(mode(builder(t, client, got.consume)).OnError(errs.add).BuildQueue()))
					putAll(t, q, "before")
					awaitEmpty(t, client)
					create := client.Create().WithMode(builders.PersistentSequential)
					node := tt.node
					if node == "" {
						create = create.WithACL(zk.WorldACL(tt.perms)...)
					} else {
						allow(t, client, node, tt.perms)
					}
					path, err := create.ForPath(ctx, queuePath+"/queue-", nodeOf("a"))
					must(t, err)
					if err := errs.await(t, 1)[0]; !errors.Is(err, zk.ErrNoAuth) {
						t.Errorf("reported is %v", err)
					}
					<-time.After(2 * time.Second) // it is tried again meanwhile, and the next time a second later
					if all := errs.all(); len(all) != 1 {
						t.Errorf("one refusal is reported %d times: %v", len(all), all)
					}
					if node == "" {
						node = path
					}
					allow(t, client, node, zk.PermAll)
					got.awaitSoon(2)
					if items := got.await(2); len(items) != 2 || items[1] != "a" {
						t.Errorf("delivered are %q", items)
					}
					awaitEmpty(t, client)
				})
			})
		})
	}
}
