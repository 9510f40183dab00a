package simulation_test

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/queue"
)

const missingChroots = "calls without a chroot"

// chrootRecipe is a client in each process whose chroot is missing until the world is calm. No recipe does anything
// without a chroot, and each says why. When it is there, all go on.
func chrootRecipe(w *world) recipe {
	act := func(ctx context.Context, a *actor) {
		chroot, losesNoMore := absent(a.process), false
		for ctx.Err() == nil {
			last := w.isCalm()
			if last {
				err := w.retryOutage(func(ctx context.Context) error {
					_, err := w.operator.Create().OrSetData().ForPath(ctx, chroot, nil)
					return err
				})
				if err != nil {
					return
				}
			}
			began := time.Now()
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			err := callWithoutChroot(bounded, a.client, a.random.IntN(4))
			cancel()
			quiet := w.isQuiet(time.Since(began)+2*sessionTimeout) && !a.process.dead.Load() && !a.process.left.Load()
			switch {
			case ctx.Err() != nil:
			case last && err == nil:
				return
			case last && quiet && (losesNoMore || !errors.Is(err, framework.ErrConnectionLoss)):
				w.violate("%s: fails with its chroot: %v", a.name, err)
				return
			case last && quiet: // the first write after its session was moved: that loses the connection, however late
				losesNoMore = true
			case err == nil:
				w.violate("%s: succeeds without its chroot", a.name)
				return
			case quiet && !errors.Is(err, framework.ErrNoChroot) && !errors.Is(err, framework.ErrConnectionLoss): // of a move
				w.violate("%s: does not name its chroot: %v", a.name, err)
				return
			case errors.Is(err, framework.ErrNoChroot):
				w.report.count(missingChroots)
			}
			a.pause(ctx, w.calm, 3*time.Second)
		}
	}
	return recipe{name: "missing chroot", chroot: true, actors: []role{{"has no chroot", act}}}
}

// absent returns the chroot that the clients of a process do not have.
func absent(p *process) string { return "/absent-" + p.name }

// callWithoutChroot uses one of several recipes.
func callWithoutChroot(ctx context.Context, client *framework.Client, which int) error {
	switch which {
	case 0:
		hold, err := locks.NewInterProcessMutex(client, "/lock").Acquire(ctx)
		if err == nil {
			err = hold.Release(ctx)
		}
		return err
	case 1:
		return queue.NewSimpleDistributedQueue(client, "/queue").Offer(ctx, nil)
	case 2:
		n := nodes.NewPersistentNode(client, "/kept/node", builders.Ephemeral, nil)
		if err := n.Start(); err != nil {
			return err
		}
		err := n.WaitForInitialCreate(ctx)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return errors.Join(err, n.Close(ctx))
	}
	_, err := client.Create().CreatingParentsIfNeeded().OrSetData().ForPath(ctx, "/a/b", nil)
	return err
}
