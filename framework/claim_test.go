package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

const (
	claimPath = "/brokers/7"
	epochPath = "/epochs/7"
)

// claims are both ways to have an ephemeral node at a fixed path.
var claims = map[string]func(ctx context.Context, c *framework.Client, data string) error{
	"CreateEphemeral": func(ctx context.Context, c *framework.Client, data string) error {
		return c.CreateEphemeral(ctx, claimPath, []byte(data))
	},
	"Claim": func(ctx context.Context, c *framework.Client, data string) error {
		claim, err := c.Claim(ctx, claimPath, epochPath, []byte(data))
		if (claim == nil) != (err != nil) {
			return fmt.Errorf("claim %v, %w", claim, err)
		}
		return err
	},
}

// wantClaimed checks the node: it is of the session of the client, with this data.
func wantClaimed(t *testing.T, client *framework.Client, data string) {
	t.Helper()
	ctx := testenv.Context(t)
	must(t, client.Sync().ForPath(ctx, "/"))
	var stat zk.Stat
	got, err := client.GetData().StoringStatIn(&stat).ForPath(ctx, claimPath)
	if err != nil || string(got) != data || stat.EphemeralOwner != client.SessionID() {
		t.Errorf("data %q of session %#x, not %q of %#x; %v", got, stat.EphemeralOwner, data, client.SessionID(), err)
	}
}

func TestClaimIsOfThePresentSession(t *testing.T) {
	t.Parallel()
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			client := connectClient(t, testenv.ConnectString(t), framework.WithNamespace("ns"))
			must(t, claim(ctx, client, "one")) // the parents are missing
			wantClaimed(t, client, "one")
			must(t, claim(ctx, client, "two")) // of the same session
			wantClaimed(t, client, "two")
			for i := range 3 {
				before := client.SessionID()
				must(t, client.Reset()) // the node stays until the timeout of its session
				must(t, client.BlockUntilConnected(ctx))
				must(t, claim(ctx, client, fmt.Sprint(i)))
				if client.SessionID() == before {
					t.Error("the session is the same")
				}
				wantClaimed(t, client, fmt.Sprint(i))
			}
		})
	}
}

func TestClaimOfNodeOfAnotherIsRefused(t *testing.T) {
	t.Parallel()
	for name, claim := range claims {
		for _, mode := range []builders.CreateMode{builders.Ephemeral, builders.Persistent} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				ctx := testenv.Context(t)
				connect := testenv.ConnectString(t)
				client, other := connectClient(t, connect), connectClient(t, connect)
				_, err := other.Create().CreatingParentsIfNeeded().WithMode(mode).ForPath(ctx, claimPath, []byte("theirs"))
				must(t, err)
				must(t, client.Sync().ForPath(ctx, "/"))
				err = claim(ctx, client, "ours")
				if !errors.Is(err, framework.ErrClaimed) || !errors.Is(err, zk.ErrNodeExists) ||
					framework.MayHaveTakenEffect(err) {
					t.Errorf("error is %v", err)
				}
				data, err := other.GetData().ForPath(ctx, claimPath)
				if err != nil || string(data) != "theirs" {
					t.Errorf("data %q, %v", data, err)
				}
				if _, err := other.GetData().ForPath(ctx, epochPath); name == "Claim" && err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestClaimWithBadPathsIsError(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := connectClient(t, testenv.ConnectString(t))
	for _, paths := range [][2]string{{"a", epochPath}, {claimPath, "e"}, {claimPath, ""}} {
		if claim, err := client.Claim(ctx, paths[0], paths[1], nil); !errors.Is(err, zk.ErrInvalidPath) || claim != nil {
			t.Errorf("claim %v, %v", claim, err)
		}
	}
	for _, paths := range [][2]string{{"/a", "/a"}, {"/a", "/a/epoch"}, {"/epoch/a", "/epoch"}, {"/", "/epoch"}} {
		claim, err := client.Claim(ctx, paths[0], paths[1], nil)
		if !errors.Is(err, framework.ErrBadArguments) || claim != nil {
			t.Errorf("claim %v, %v", claim, err)
		}
	}
	children, err := client.GetChildren().ForPath(ctx, "/")
	must(t, err)
	if len(children) > 0 {
		t.Errorf("they have left %v", children)
	}
	must(t, client.Close())
	if claim, err := client.Claim(ctx, claimPath, epochPath, nil); !errors.Is(err, framework.ErrClosed) || claim != nil {
		t.Errorf("claim %v, %v", claim, err)
	}
}

// TestClaimOvertakenWriteIsRefused is what a fence by the name alone lets through: the next holder has the same name.
func TestClaimOvertakenWriteIsRefused(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	one, two := connectClient(t, connect), connectClient(t, connect)
	_, err := two.Create().ForPath(ctx, "/data", []byte("0"))
	must(t, err)
	first, err := one.Claim(ctx, claimPath, epochPath, nil)
	must(t, err)
	_, err = first.Client().SetData().ForPath(ctx, "/data", []byte("1"))
	must(t, err)
	must(t, two.Delete().ForPath(ctx, claimPath)) // as the end of the session, of which the first has not heard
	late := func(name string) {
		t.Helper()
		_, err := first.Client().SetData().ForPath(ctx, "/data", []byte("late"))
		if !errors.Is(err, framework.ErrClaimLost) {
			t.Errorf("%s: error of the view is %v", name, err)
		}
		write := two.TransactionOp().SetData().ForPath("/data", []byte("late"))
		_, err = two.Transaction().ForOperations(ctx, first.Fence(), write)
		if !errors.Is(err, framework.ErrClaimLost) {
			t.Errorf("%s: error of the transaction is %v", name, err)
		}
	}
	late("no holder")
	second, err := two.Claim(ctx, claimPath, epochPath, nil)
	must(t, err)
	if second.Epoch() <= first.Epoch() || second.Token() <= first.Token() {
		t.Errorf("epoch %d and token %d after %d and %d", second.Epoch(), second.Token(), first.Epoch(), first.Token())
	}
	late("another holder")
	byName := one.Fenced(ctx, errors.New("lost"), claimPath)
	if _, err := byName.SetData().ForPath(ctx, "/data", []byte("by name")); err != nil {
		t.Errorf("a fence of the name refuses: %v", err)
	}
	_, err = second.Client().SetData().ForPath(ctx, "/data", []byte("2"))
	must(t, err)
	third, err := two.Claim(ctx, claimPath, epochPath, nil) // again, of the same session
	must(t, err)
	if _, err := second.Client().SetData().ForPath(ctx, "/data", nil); !errors.Is(err, framework.ErrClaimLost) {
		t.Errorf("error of the second is %v", err)
	}
	must(t, third.Client().Delete().ForPath(ctx, claimPath))
	if _, err := third.Client().SetData().ForPath(ctx, "/data", nil); !errors.Is(err, framework.ErrClaimLost) {
		t.Errorf("error after the end is %v", err)
	}
	if data, err := one.GetData().ForPath(ctx, "/data"); err != nil || string(data) != "2" {
		t.Errorf("data %q, %v", data, err)
	}
}

// A process of Java creates the node by itself, as soon as that of the first one is gone, and moves no epoch.
func TestClaimLateWriteAfterEndOfSessionIsRefusedWhoeverHasTheNode(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	one, two := connectClient(t, connect), connectClient(t, connect)
	for range 2 { // also after the second claim of a session
		first, err := one.Claim(ctx, claimPath, epochPath, nil)
		must(t, err)
		children, err := two.GetChildren().ForPath(ctx, epochPath)
		if err != nil || len(children) != 1 {
			t.Errorf("children %v, %v", children, err)
		}
		second, err := one.Claim(ctx, claimPath, epochPath, nil)
		must(t, err)
		must(t, testenv.Server(t).ExpireSession(one.SessionID()))
		must(t, two.Sync().ForPath(ctx, "/"))
		_, err = two.Create().CreatingParentsIfNeeded().WithMode(builders.Ephemeral).ForPath(ctx, claimPath, nil)
		must(t, err)                                             // the parent is a container, which may be gone
		for _, late := range []*framework.Claim{first, second} { // as if it had not heard of the end
			write := two.TransactionOp().Create().ForPath("/late", nil)
			if _, err := two.Transaction().ForOperations(ctx, late.Fence(), write); !errors.Is(err, framework.ErrClaimLost) {
				t.Errorf("error is %v", err)
			}
		}
		<-second.Context().Done()
		if _, err := one.Claim(ctx, claimPath, epochPath, nil); !errors.Is(err, framework.ErrClaimed) {
			t.Errorf("error is %v", err)
		}
		must(t, two.Delete().ForPath(ctx, claimPath))
	}
}

// Without the epoch node its version begins again, and the next claim may have the version of the last one.
func TestClaimLateWriteAfterDeletionOfEpochNodeIsRefused(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	one, two := connectClient(t, connect), connectClient(t, connect)
	first, err := one.Claim(ctx, claimPath, epochPath, nil)
	must(t, err)
	must(t, two.Sync().ForPath(ctx, "/"))
	must(t, two.Delete().ForPath(ctx, claimPath))
	must(t, two.Delete().DeletingChildrenIfNeeded().ForPath(ctx, epochPath))
	second, err := two.Claim(ctx, claimPath, epochPath, nil)
	must(t, err)
	if first.Epoch() != second.Epoch() {
		t.Errorf("epoch %d after %d", second.Epoch(), first.Epoch())
	}
	if _, err := first.Client().Create().ForPath(ctx, "/late", nil); !errors.Is(err, framework.ErrClaimLost) {
		t.Errorf("error is %v", err)
	}
	_, err = second.Client().Create().ForPath(ctx, "/state", nil)
	must(t, err)
}

// The next claim of the same session also begins with the first version.
func TestClaimOvertakenInItsSessionAfterDeletionOfEpochNodeIsRefused(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client, operator := connectClient(t, connect), connectClient(t, connect)
	var claims []*framework.Claim
	for range 3 {
		claim, err := client.Claim(ctx, claimPath, epochPath, nil)
		must(t, err)
		claims = append(claims, claim)
		must(t, operator.Sync().ForPath(ctx, "/"))
		children, err := operator.GetChildren().ForPath(ctx, epochPath)
		if err != nil || len(children) != 1 {
			t.Errorf("children %v, %v", children, err)
		}
		must(t, operator.Delete().DeletingChildrenIfNeeded().ForPath(ctx, epochPath))
	}
	last, err := client.Claim(ctx, claimPath, epochPath, nil)
	must(t, err)
	for _, claim := range claims {
		if claim.Epoch() != last.Epoch() {
			t.Errorf("epoch %d after %d", last.Epoch(), claim.Epoch())
		}
		if _, err := claim.Client().Create().ForPath(ctx, "/late", nil); !errors.Is(err, framework.ErrClaimLost) {
			t.Errorf("error of an overtaken claim is %v", err)
		}
	}
	_, err = last.Client().Create().ForPath(ctx, "/state", nil)
	must(t, err)
}

// Each claim makes a child of its own, and deletes that of the claim before it. The last one goes with the session.
func TestClaimLeavesOneChildUntilEndOfSession(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client, other := connectClient(t, connect), connectClient(t, connect)
	wantChildren := func(want int) []string {
		t.Helper()
		must(t, other.Sync().ForPath(ctx, "/"))
		children, err := other.GetChildren().ForPath(ctx, epochPath)
		if err != nil || len(children) != want {
			t.Errorf("children %v, %v", children, err)
		}
		return children
	}
	seen := map[string]bool{}
	claim := func() {
		t.Helper()
		_, err := client.Claim(ctx, claimPath, epochPath, nil)
		must(t, err)
		for _, child := range wantChildren(1) {
			if seen[child] {
				t.Errorf("two claims have the child %s", child)
			}
			seen[child] = true
		}
	}
	claim()
	claim()
	must(t, client.Reset())
	must(t, client.BlockUntilConnected(ctx))
	claim() // the earlier session has a child until its timeout
	claim()
	must(t, client.Delete().ForPath(ctx, claimPath))
	claim()
	ended := client.Session()
	must(t, testenv.Server(t).ExpireSession(client.SessionID()))
	<-ended.Context().Done()
	wantChildren(0)
	must(t, client.BlockUntilConnected(ctx))
	claim()
	must(t, client.Close())
	wantChildren(0)
}

// The session that has the node ends between the look at the node and its replacement, and another client is faster.
// The node is the only one of that session, or there is a child too.
func TestClaimWhoseEarlierSessionEndsMeanwhileLeavesNodeOfAnother(t *testing.T) {
	t.Parallel()
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			chroot := testenv.Chroot(t)
			proxy, connect := testclient.Proxy(t, chroot)
			client, other := connectClient(t, connect), connectClient(t, testenv.Addr(t)+chroot)
			must(t, client.EnsurePath(ctx, epochPath))
			must(t, claim(ctx, client, "earlier"))
			earlier := client.SessionID()
			must(t, client.Reset())
			must(t, client.BlockUntilConnected(ctx))
			held := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"multi"}, Action: curatortest.HoldRequest, Count: 1, MayMiss: true,
			})
			ended := make(chan error, 1)
			go func() { ended <- claims["Claim"](ctx, client, "ours") }()
			var err error
			testenv.Eventually(t, func() bool {
				select {
				case err = <-ended:
					return true
				default:
					return held.Hits() == 1
				}
			}, "the claim is refused, or has looked")
			must(t, testenv.Server(t).ExpireSession(earlier))
			must(t, other.Sync().ForPath(ctx, "/"))
			must(t, other.CreateEphemeral(ctx, claimPath, []byte("theirs")))
			held.Release()
			if err == nil {
				err = receive(t, ended)
			}
			if !errors.Is(err, framework.ErrClaimed) || framework.MayHaveTakenEffect(err) {
				t.Errorf("error is %v", err)
			}
			if data, err := other.GetData().ForPath(ctx, claimPath); err != nil || string(data) != "theirs" {
				t.Errorf("data %q, %v", data, err)
			}
		})
	}
}

// beforeCreate is an ACL provider that calls a function once, before the node of a claim is created.
type beforeCreate struct {
	builders.FixedACL
	fn atomic.Pointer[func()]
}

func (b *beforeCreate) ACLForPath(path string) []zk.ACL {
	if path == claimPath {
		if fn := b.fn.Swap(nil); fn != nil {
			(*fn)()
		}
	}
	return nil
}

// The present session has the node when the claim looks, and the next session of the client is there before the
// transaction.
func TestClaimWhosePresentSessionEndsMeanwhileLeavesNodeOfAnother(t *testing.T) {
	t.Parallel()
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			connect := testenv.ConnectString(t)
			between := &beforeCreate{FixedACL: zk.WorldACL(zk.PermAll)}
			client, other := connectClient(t, connect, framework.WithACLProvider(between)), connectClient(t, connect)
			must(t, client.CreateEphemeral(ctx, claimPath, []byte("before")))
			next := func() {
				session := client.Session()
				must(t, testenv.Server(t).ExpireSession(session.ID()))
				<-session.Context().Done()
				must(t, other.Sync().ForPath(ctx, "/"))
				must(t, other.CreateEphemeral(ctx, claimPath, []byte("theirs")))
				must(t, client.BlockUntilConnected(ctx))
			}
			between.fn.Store(&next)
			err := claim(ctx, client, "ours")
			if !errors.Is(err, framework.ErrClaimed) || framework.MayHaveTakenEffect(err) {
				t.Errorf("error is %v", err)
			}
			if data, err := other.GetData().ForPath(ctx, claimPath); err != nil || string(data) != "theirs" {
				t.Errorf("data %q, %v", data, err)
			}
		})
	}
}

// Without a child of the session that has the node, nothing shows to the server that it has ended.
func TestClaimOfNodeOfEarlierSessionWithoutChildIsRefusedUntilItsEnd(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := connectClient(t, testenv.ConnectString(t))
	must(t, client.CreateEphemeral(ctx, claimPath, []byte("earlier")))
	_, err := client.Claim(ctx, claimPath, epochPath, []byte("same session"))
	must(t, err)
	wantClaimed(t, client, "same session")
	must(t, client.Delete().DeletingChildrenIfNeeded().ForPath(ctx, epochPath))
	earlier := client.SessionID()
	must(t, client.Reset())
	must(t, client.BlockUntilConnected(ctx))
	if _, err = client.Claim(ctx, claimPath, epochPath, nil); !errors.Is(err, framework.ErrClaimed) {
		t.Errorf("error is %v", err)
	}
	must(t, testenv.Server(t).ExpireSession(earlier))
	_, err = client.Claim(ctx, claimPath, epochPath, []byte("ours"))
	must(t, err)
	wantClaimed(t, client, "ours")
}

// A claim is behind the answer to the transaction that made it, unless the next one was faster.
func TestClaimsAtOnceHaveOneHolder(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	proxy, connect := testclient.Proxy(t, testenv.Chroot(t))
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.HoldRequest, Count: 4})
	results := make(chan error, 4)
	for range cap(results) {
		client := connectClient(t, connect)
		go func() {
			claim, err := client.Claim(ctx, claimPath, epochPath, nil)
			if err == nil {
				_, err = claim.Client().Create().ForPath(ctx, "/state", nil)
			}
			results <- err
		}()
	}
	testenv.Eventually(t, func() bool { return held.Hits() == cap(results) }, "each has seen the same epoch")
	held.Release()
	claimed := 0
	for range cap(results) {
		err := receive(t, results)
		switch {
		case err == nil:
			claimed++
		case !errors.Is(err, framework.ErrClaimed) || framework.MayHaveTakenEffect(err):
			t.Errorf("error is %v", err)
		}
	}
	if claimed != 1 {
		t.Errorf("%d claims", claimed)
	}
}

// The first transaction takes effect, and its answer is lost. Then the node is of another client.
func TestClaimLostAnswerAndOtherHolderMayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			chroot := testenv.Chroot(t)
			other := connectClient(t, testenv.Addr(t)+chroot)
			must(t, other.EnsurePath(ctx, zkpath.Parent(claimPath)))
			must(t, other.EnsurePath(ctx, epochPath))
			proxy, connect := testclient.Proxy(t, chroot)
			client := connectClient(t, connect, framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
			must(t, client.Sync().ForPath(ctx, "/"))
			suspended := testclient.AwaitState(ctx, t, client, framework.Suspended)
			restore := proxy.Faults().RefuseConnects()
			proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.CutAfter, Count: 1})
			ended := make(chan error, 1)
			go func() { ended <- claim(ctx, client, "ours") }()
			suspended()
			must(t, other.Sync().ForPath(ctx, "/"))
			must(t, other.Delete().ForPath(ctx, claimPath))
			_, err := other.Create().WithMode(builders.Ephemeral).ForPath(ctx, claimPath, []byte("theirs"))
			must(t, err)
			restore()
			err = receive(t, ended)
			if !errors.Is(err, framework.ErrClaimed) || !framework.MayHaveTakenEffect(err) {
				t.Errorf("error is %v", err)
			}
			if data, err := other.GetData().ForPath(ctx, claimPath); err != nil || string(data) != "theirs" {
				t.Errorf("data %q, %v", data, err)
			}
		})
	}
}

func TestClaimSessionEndsWritesAreNotSent(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := connectClient(t, testenv.ConnectString(t))
	claim, err := client.Claim(ctx, claimPath, epochPath, nil)
	must(t, err)
	must(t, client.Reset())
	<-claim.Context().Done()
	_, err = claim.Client().Create().ForPath(ctx, "/late", nil)
	if !errors.Is(err, framework.ErrSessionLost) || framework.MayHaveTakenEffect(err) {
		t.Errorf("error is %v", err)
	}
}

func TestFenceVersionOfAnyVersionIsError(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	op := client.TransactionOp().FenceVersion(framework.ErrClaimLost, "/", -1)
	_, err := client.Transaction().ForOperations(testenv.Context(t), op)
	if !errors.Is(err, framework.ErrBadArguments) {
		t.Errorf("error is %v", err)
	}
}

// Each request is lost in turn, or its answer.
func TestClaimWithLostConnectionsIsOfThePresentSession(t *testing.T) {
	t.Parallel()
	for name, claim := range claims {
		for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
			t.Run(name+" "+action.String(), func(t *testing.T) {
				t.Parallel()
				testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
					t.Helper()
					ctx := testenv.Context(t)
					proxy, connect := testclient.Proxy(t, testenv.Chroot(t))
					client := connectClient(t, connect, framework.WithRetryPolicy(retry.NTimes(100, 10*time.Millisecond)))
					must(t, claim(ctx, client, "before"))
					must(t, client.Reset())
					must(t, client.BlockUntilConnected(ctx))
					fault := proxy.Faults().Add(curatortest.Rule{Action: action, Skip: k, Count: 1, MayMiss: true})
					must(t, claim(ctx, client, "after"))
					wantClaimed(t, client, "after")
					return fault.Hits() > 0
				})
			})
		}
	}
}

// Clients claim one path in turn, while their connections are cut. The data shows each write with the epoch of its
// writer: an overtaken one must not write behind a later one.
func TestClaimsOfManyClientsWriteInOrderOfEpochs(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	direct := connectClient(t, testenv.Addr(t)+chroot)
	_, err := direct.Create().ForPath(ctx, "/log", []byte{})
	must(t, err)
	proxy, connect := testclient.Proxy(t, chroot)
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"multi"}, Chance: .1, Seed: 1, Action: curatortest.CutAfter, MayMiss: true,
	})
	var wg sync.WaitGroup
	for range 4 {
		client := connectClient(t, connect, framework.WithRetryPolicy(retry.NTimes(100, 10*time.Millisecond)))
		wg.Go(func() {
			for round := 0; round < 10 && ctx.Err() == nil; {
				claim, err := client.Claim(ctx, claimPath, epochPath, nil)
				if errors.Is(err, framework.ErrClaimed) {
					_ = direct.Delete().Quietly().ForPath(ctx, claimPath) // as the server does when a session ends
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				round++
				for range 3 {
					data, err := client.GetData().ForPath(ctx, "/log")
					if err == nil {
						_, err = claim.Client().SetData().ForPath(ctx, "/log", fmt.Appendf(data, "%d ", claim.Epoch()))
					}
					if err != nil {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	data, err := direct.GetData().ForPath(ctx, "/log")
	must(t, err)
	last := 0
	for _, field := range strings.Fields(string(data)) {
		epoch := 0
		if _, err := fmt.Sscan(field, &epoch); err != nil || epoch < last {
			t.Fatalf("epoch %q after %d: %v", field, last, err)
		}
		last = epoch
	}
	if last == 0 {
		t.Error("nothing is written")
	}
}
