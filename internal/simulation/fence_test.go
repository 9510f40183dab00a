package simulation_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

// fenced is a hold, a lease or a leadership.
type fenced interface {
	Client() *framework.Client
	Fence() builders.TransactionOperation
}

// fencedWrite is a write to the data of a resource.
type fencedWrite struct {
	claim   *claim
	zxids   []int64 // of the tries that took effect, as far as they are known
	refused bool    // the claimant got an error that means that it took no effect
}

// write writes the data of a claim's resource. A late write comes from a client that relies on the servers alone.
func (a *actor) write(c *claim, late bool) {
	if c.fence == nil {
		return
	}
	w := a.process.world
	ctx, cancel := context.WithTimeout(a.process.ctx, a.within(3*time.Second))
	defer cancel()
	id, data := w.judge.writes(c)
	var zxid int64
	var err error
	if late || a.random.IntN(2) == 0 {
		_, err = a.client.Transaction().StoringZxidIn(&zxid).ForOperations(ctx,
			c.fence.Fence(), a.client.TransactionOp().SetData().ForPath(c.resource.data, data))
	} else {
		stat, failed := c.fence.Client().SetData().ForPath(ctx, c.resource.data, data)
		if err = failed; err == nil {
			zxid = stat.Mzxid
		}
	}
	w.judge.wrote(c.resource, id, zxid, err)
}

// isRefusal reports whether an error says that a fenced write took no effect, as its lock is lost or released.
func isRefusal(err error) bool {
	lost := errors.Is(err, locks.ErrLockLost) || errors.Is(err, locks.ErrReleased) ||
		errors.Is(err, leader.ErrLeadershipLost)
	return lost && !errors.Is(err, framework.ErrUncertain)
}

// createData creates the nodes that holders write.
func (w *world) createData() {
	for _, r := range w.judge.resources {
		err := w.retryOutage(func(ctx context.Context) error {
			_, err := w.operator.Create().CreatingParentsIfNeeded().ForPath(ctx, r.data, nil)
			return err
		})
		if err != nil && w.ctx.Err() == nil {
			w.violate("%s is not created: %v", r.data, err)
		}
	}
}

// writes records that a claimant is about to write, and returns what it writes.
func (j *judge) writes(c *claim) (id int64, data []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	id = int64(len(c.resource.writes))
	c.resource.writes = append(c.resource.writes, &fencedWrite{claim: c})
	return id, strconv.AppendInt(nil, id, 10)
}

// wrote records the outcome of a write.
func (j *judge) wrote(r *resource, id, zxid int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	x := r.writes[id]
	switch {
	case err == nil:
		j.world.report.count("fenced writes")
		j.tookEffect(x, zxid)
	case isRefusal(err):
		j.world.report.count("fenced writes that are refused")
		if x.refused = true; len(x.zxids) > 0 {
			j.violate("a write was refused, and took effect: %v: %v", x.claim, err)
		}
	}
}

// judgeData judges the last write to the data of a resource. A write takes effect only while the node of its claim
// exists. If the node is gone, and the line has not changed since the write, it was gone before.
func (j *judge) judgeData(r *resource) {
	leader, err := j.world.cluster.Leader()
	if err != nil { // no server has a quorum
		return
	}
	node, ok := leader.Node(r.data)
	if !ok || node.Stat.Mzxid == r.mzxid {
		return
	}
	r.mzxid = node.Stat.Mzxid
	id, err := strconv.Atoi(string(node.Data))
	if err != nil {
		return // nobody has written yet
	}
	x := r.writes[id]
	j.tookEffect(x, r.mzxid)
	if x.claim.path == "" || leader.Exists(x.claim.path) {
		return
	}
	if line, ok := leader.Node(zkpath.Parent(x.claim.path)); ok && line.Stat.Pzxid < r.mzxid {
		j.violate("written without a node: %v", x.claim)
	}
}

// tookEffect judges a write that took effect in a transaction. The tokens of writes never fall, except among those who
// share.
func (j *judge) tookEffect(x *fencedWrite, zxid int64) {
	c := x.claim
	if x.refused {
		j.violate("a write was refused, and took effect: %v", c)
	}
	if slices.Contains(x.zxids, zxid) {
		return
	}
	x.zxids = append(x.zxids, zxid)
	for _, y := range c.resource.writes {
		other := y.claim
		if len(y.zxids) == 0 || c.token == 0 || other.token == 0 || c.shared && other.shared {
			continue
		}
		if c.token < other.token && zxid > slices.Min(y.zxids) || c.token > other.token && zxid < slices.Max(y.zxids) {
			j.violate("written in the wrong order: %v, and %v", c, other)
		}
	}
}
