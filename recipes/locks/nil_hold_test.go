package locks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// A program asks for the hold of a context that has none. A nil Hold is a released one.
func TestNilHoldWriteFails(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	for name, h := range map[string]fenced{
		"hold": locks.HoldOf(ctx), "empty hold": &locks.Hold{}, "lease": (*locks.Lease)(nil), "empty lease": &locks.Lease{},
	} {
		for way, write := range map[string]func() error{
			"transaction": func() error { _, err := h.Transaction(ctx); return err },
			"fence": func() error {
				op := client.TransactionOp().Create().ForPath("/late", nil)
				_, err := client.Transaction().ForOperations(ctx, h.Fence(), op)
				return err
			},
			"client": func() error { return createAndRead(ctx, h.Client()) },
			"client in the background": func() error {
				return h.Client().Create().InBackground(nil).ForPath(ctx, "/late", nil)
			},
			"view of the client": func() error { return createAndRead(ctx, h.Client().UsingNamespace("ns")) },
			"fence of the client": func() error {
				return createAndRead(ctx, h.Client().Fenced(ctx, errors.New("lost"), "/fence"))
			},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				if err := write(); !errors.Is(err, locks.ErrReleased) {
					t.Errorf("error is %v", err)
				}
			})
		}
		if err := h.Client().Start(); !errors.Is(err, framework.ErrView) {
			t.Errorf("its client is started: %v", err)
		}
	}
	if stat, err := client.CheckExists().ForPath(ctx, "/late"); err != nil || stat != nil {
		t.Errorf("it was written: %v, %v", stat, err)
	}
}

// createAndRead returns the error of a create if a read fails, too.
func createAndRead(ctx context.Context, client *framework.Client) error {
	if _, err := client.GetData().ForPath(ctx, "/"); !errors.Is(err, locks.ErrReleased) {
		return fmt.Errorf("a read: %v", err)
	}
	_, err := client.Create().ForPath(ctx, "/late", nil)
	return err
}
