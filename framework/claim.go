package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/zkpath"
)

var (
	// ErrClaimed is wrapped by the error of [Client.CreateEphemeral] and [Client.Claim] if the node is not of this client:
	// another session has it, or it is not ephemeral. It matches zk.ErrNodeExists.
	ErrClaimed = errtext.Special(zk.ErrNodeExists, "curator: the node is not of this client")
	// ErrClaimLost is the error of a write that the fence of a [Claim] has refused: its node is gone, or was claimed
	// again.
	ErrClaimLost = errors.New("curator: claim lost")
)

// CreateEphemeral creates an ephemeral node at a fixed path, its parents as containers. A node that is of this client
// already, of its session or of an earlier one that the server has not ended yet, is replaced in one transaction, so
// that the node is of the present session and has this data. Call it again after a lost session, and after an error
// that leaves open whether there is a node: see [MayHaveTakenEffect]. If the node is of another session, also of one of
// an earlier process, the error is [ErrClaimed], and nothing is changed. ctx bounds the wait. In Java: a program looks
// at the owner of the node, deletes it and creates it again.
//
// A node of an earlier session may end by itself in the moment in which it is replaced. If another client creates its
// own within that round trip, that one is replaced. [Client.Claim] excludes it. Neither excludes it if an operator
// deletes the node within the round trip.
func (c *Client) CreateEphemeral(ctx context.Context, path string, data []byte) error {
	_, err := c.claim(ctx, path, "", data)
	return err
}

// Claim creates an ephemeral node at a fixed path, as [Client.CreateEphemeral] does, and begins an epoch: it sets the
// data of the node epoch, and creates an ephemeral child of it, with the id of the session and a random part as its
// name, all in the same transaction. The child ends with the session, or with its next claim. epoch is a persistent
// node for this path alone, which Claim creates, and which no client should write otherwise. It is neither the node nor
// above or below it: that is [ErrBadArguments].
//
// The errors are those of CreateEphemeral, with one case more: a node of an earlier session of this client is replaced
// only while that session has a child of epoch. One that only CreateEphemeral has made, or whose child was deleted, is
// [ErrClaimed] until that session has ended: without the child the server could not see that it ends, and that another
// client has created the node since.
//
// The fence of the [Claim] checks the node, the child and the version of that write. The server refuses a late write
//   - after the end of the session, whoever has created the node since, with Claim or without it, in Java for example;
//   - after the next Claim with this epoch, of any client, also if the node epoch was deleted between them;
//   - while the node does not exist.
//
// It does not refuse a write if the node was deleted while its session lived, and was created again without Claim.
func (c *Client) Claim(ctx context.Context, path, epoch string, data []byte) (*Claim, error) {
	if err := zkpath.Validate(path, false); err != nil {
		return nil, errtext.Wrap(err, "curator", "claim")
	}
	if err := zkpath.Validate(epoch, false); err != nil {
		return nil, errtext.Wrap(err, "curator", "claim %s: epoch", path)
	}
	if isAtOrBelow(epoch, path) || isAtOrBelow(path, epoch) {
		err := fmt.Errorf("%w: the epoch %s and the node are one, or one is below the other", ErrBadArguments, epoch)
		return nil, errtext.Wrap(err, "curator", "claim %s", path)
	}
	return c.claim(ctx, path, epoch, data)
}

// isAtOrBelow reports whether path is top or a path below it.
func isAtOrBelow(path, top string) bool {
	return strings.HasPrefix(path+"/", strings.TrimSuffix(top, "/")+"/")
}

// Claim is an ephemeral node at a fixed path, with a fence for writes. It ends with its session, when another claim
// with its epoch begins, also one of this client, and when its node is deleted. One that has ended does not come back:
// call [Client.Claim] again.
type Claim struct {
	client  *Client
	path    string
	session *Session
	fence   builders.TransactionOperation
	version int32
	token   int64
}

// Context returns the context of the session that has the node: see [Session.Context]. It ends with the session alone,
// and not when the node is deleted or claimed again: the fence finds these.
func (c *Claim) Context() context.Context { return c.session.Context() }

// Epoch returns the version of the epoch node that is this claim's. It grows from claim to claim, and
// begins again if the epoch node is deleted.
func (c *Claim) Epoch() int32 { return c.version }

// Token returns the fencing token: the id of the transaction that created the node. It grows from claim to claim.
func (c *Claim) Token() int64 { return c.token }

// Fence returns an operation that checks the claim. A transaction with it takes effect only while the claim lasts, and
// fails with [ErrClaimLost] otherwise. The server decides, so it refuses a process that was stopped as well.
func (c *Claim) Fence() builders.TransactionOperation { return c.fence }

// Client returns a view of the client whose writes take effect only while the claim lasts: see [Client.Fenced]. A write
// fails with [ErrClaimLost] if the server finds that it does not, and without a request, with [ErrSessionLost], after
// the end of the session. Client().Delete() of the path ends the claim.
func (c *Claim) Client() *Client {
	return c.client.with(c.client.operations.FencedBy(c.session.Context(), c.fence))
}

// claim is CreateEphemeral if epoch is "", and Claim else. Each try looks at the nodes again, whatever the last one has
// left: no request of it is retried alone.
func (c *Client) claim(ctx context.Context, path, epoch string, data []byte) (claim *Claim, err error) {
	isOpen := false // a transaction may have taken effect, whatever the last try has found
	err = c.CallWithRetry(ctx, func(ctx context.Context) (err error) {
		again := true
		for round := 0; again && round < maxClaimRounds; round++ {
			claim, again, err = c.claimOnce(ctx, path, epoch, data)
			isOpen = isOpen || MayHaveTakenEffect(err)
		}
		return err
	})
	if err == nil {
		return claim, nil
	}
	switch {
	case isOpen && !errors.Is(err, ErrUncertain):
		err = errtext.Join(ErrUncertain, errtext.Sent(err, ErrNotSent))
	case !isOpen && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = c.endOf(ctx)
	}
	verb := "claim"
	if epoch == "" {
		verb = "create ephemeral"
	}
	return nil, errtext.Wrap(err, "curator", "%s %s", verb, path)
}

// maxClaimRounds bounds the repairs of a claim after changes by others.
const maxClaimRounds = 10

// claimOnce claims the path, or returns an error. again reports whether it may do so in another round.
//
// What it reads and the transaction go on one connection. So the transaction does not take effect after the end of the
// session, with which a node of this session ends: another client may have created its own by then.
func (c *Client) claimOnce(ctx context.Context, path, epoch string, data []byte) (_ *Claim, again bool, err error) {
	claim := &Claim{client: c, path: path, session: c.Session()}
	op, flight := c.TransactionOp(), builders.Pipelined(ctx)
	var ops []builders.TransactionOperation
	var withChild []int64
	if epoch != "" {
		ops, withChild, err = claim.begin(flight, epoch)
		if errors.Is(err, zk.ErrNoNode) {
			if err := c.EnsurePath(ctx, epoch); err != nil {
				return nil, false, err
			}
			return nil, true, err
		}
		if err != nil {
			return nil, false, err
		}
	}
	stat, err := c.look(path).ForPath(flight, path)
	switch {
	case err != nil:
		return nil, false, err
	case claim.Context().Err() != nil: // the connection may be of the next session
		return nil, true, ErrSessionLost
	case stat != nil && !c.core.connection.isOwn(stat.EphemeralOwner):
		owner := fmt.Sprintf("session %#x has it", uint64(stat.EphemeralOwner))
		if stat.EphemeralOwner == 0 {
			owner = "it is not ephemeral"
		}
		return nil, false, errtext.Wrap(ErrClaimed, "", "%s", owner)
	case stat != nil && epoch != "" && stat.EphemeralOwner != claim.session.ID() &&
		!slices.Contains(withChild, stat.EphemeralOwner): // or both have come since the children were read
		return nil, true, errtext.Wrap(ErrClaimed, "", "earlier session %#x of this client has it, without a child of %s",
			uint64(stat.EphemeralOwner), epoch)
	case stat != nil:
		ops = append(ops, op.Delete().WithVersion(stat.Version).ForPath(path))
	}
	ops = append(ops, op.Create().WithMode(builders.Ephemeral).ForPath(path, data))
	_, err = c.Transaction().StoringZxidIn(&claim.token).ForOperations(flight, ops...)
	switch {
	case err == nil && claim.Context().Err() == nil:
		return claim, false, nil
	case err == nil: // the node is of a session that has ended, or of the next one
		return nil, true, errtext.Join(ErrUncertain, ErrSessionLost)
	case errors.Is(err, zk.ErrNoNode) && stat == nil:
		if err := c.CreateContainers(ctx, zkpath.Parent(path)); err != nil { // which names a missing chroot
			return nil, false, err
		}
		return nil, true, err
	}
	again = errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion)
	return nil, again, err
}

// begin sets the fence of the claim. It returns the operations that make it true, and the sessions of this client whose
// children these delete: the server refuses them after the end of such a session. The error is zk.ErrNoNode without an
// epoch node.
//
// Each claim has another version of the epoch node, also within one session. The child ends with the session, and no
// other claim has its name: it holds off late writes when a client without Claim creates the node, and when the epoch
// node was deleted, which begins again with version 0.
func (c *Claim) begin(ctx context.Context, epoch string) (
	ops []builders.TransactionOperation, withChild []int64, err error,
) {
	var stat zk.Stat
	children, err := c.client.GetChildren().StoringStatIn(&stat).ForPath(ctx, epoch)
	if err != nil {
		return nil, nil, err
	}
	op := c.client.TransactionOp()
	ops = append(ops, op.SetData().WithVersion(stat.Version).Uncompressed().ForPath(epoch, []byte{}))
	for _, child := range children {
		text, _, _ := strings.Cut(child, "-")
		id, err := strconv.ParseUint(text, 16, 64)
		if err == nil && c.client.core.connection.isOwn(int64(id)) {
			ops = append(ops, op.Delete().ForPath(zkpath.Join(epoch, child)))
			withChild = append(withChild, int64(id))
		}
	}
	child := zkpath.Join(epoch, fmt.Sprintf("%016x-%s", uint64(c.session.ID()), zkpath.NewProtectionID()))
	ops = append(ops, op.Create().WithMode(builders.Ephemeral).Uncompressed().ForPath(child, []byte{}))
	c.version = stat.Version + 1
	c.fence = hook.JoinFences([]builders.TransactionOperation{
		op.Fence(ErrClaimLost, c.path, child), op.FenceVersion(ErrClaimLost, epoch, c.version),
	}).(builders.TransactionOperation)
	return ops, withChild, nil
}
