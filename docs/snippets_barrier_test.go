package docs_test

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/barrier"
)

var _ = []any{
	maintenance, waitOnMaintenance, endMaintenance, rounds, setGate, waitOnGate, removeGate, waitOnGateFor, round,
}

func compute() {}

func maintenance(ctx context.Context, client *framework.Client) {
	gate := barrier.NewDistributedBarrier(client, "/maintenance")
	err := gate.SetBarrier(ctx) // the operator
	use(err)
}

func waitOnMaintenance(ctx context.Context, gate *barrier.DistributedBarrier) (err error) {
	err = gate.WaitOnBarrier(ctx) // everybody else; at once if it is not set
	return err
}

func endMaintenance(ctx context.Context, gate *barrier.DistributedBarrier) (err error) {
	err = gate.RemoveBarrier(ctx)
	return err
}

func rounds(ctx context.Context, client *framework.Client) error {
	member := barrier.NewDistributedDoubleBarrier(client, "/rounds", 3) // 3 in all processes
	for {
		if err := member.Enter(ctx); err != nil { // until 3 have entered
			return err
		}
		compute()
		if err := member.Leave(ctx); err != nil { // until all have called it
			return err
		}
	}
}

func setGate(ctx context.Context, client *framework.Client) error {
	gate := barrier.NewDistributedBarrier(client, "/gate")
	err := gate.SetBarrier(ctx)
	return err
}

func waitOnGate(ctx context.Context, gate *barrier.DistributedBarrier) error {
	// in another process:
	err := gate.WaitOnBarrier(ctx)
	return err
}

func removeGate(ctx context.Context, gate *barrier.DistributedBarrier) error {
	// and then, in the first:
	err := gate.RemoveBarrier(ctx)
	return err
}

func waitOnGateFor(ctx context.Context, gate *barrier.DistributedBarrier) error {
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := gate.WaitOnBarrier(wait)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // still set
	}
	return err
}

func round(ctx context.Context, client *framework.Client) error {
	member := barrier.NewDistributedDoubleBarrier(
		client, "/round", 3)
	if err := member.Enter(ctx); err != nil { // until 3 have entered
		return err
	}
	compute()
	return member.Leave(ctx) // until all have called it
}
