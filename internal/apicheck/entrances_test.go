package apicheck_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/retry"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// caller is a program that reuses its slices when a call of the API has returned. The server is down between the calls
// and the checks, so the library has sent nothing when the slices change.
type caller struct {
	*testing.T
	server *curatortest.Server
	client *framework.Client
	ctx    context.Context //nolint:containedctx // of the test
	events chan callbacks.Event
}

// note is the callback of the background operations.
func (c *caller) note(_ context.Context, ev callbacks.Event) { c.events <- ev }

// written checks that a node has the data that the caller wrote.
func (c *caller) written(path string) {
	c.Helper()
	if n, ok := c.server.Node(path); !ok || string(n.Data) != "data" {
		c.Errorf("%s: got %q, %v, want %q", path, n.Data, ok, "data")
	}
}

// protected checks the ACL of a node.
func (c *caller) protected(path string, want ...zk.ACL) {
	c.Helper()
	n, ok := c.server.Node(path)
	if diff := cmp.Diff(want, n.ACL); !ok || diff != "" {
		c.Errorf("%s: (-want +got)\n%s", path, diff)
	}
}

// background waits for the result of one background operation.
func (c *caller) background() callbacks.Event {
	c.Helper()
	select {
	case ev := <-c.events:
		testclient.Must(c, ev.Err)
		return ev
	case <-c.ctx.Done():
		c.Fatal("no callback")
		return callbacks.Event{}
	}
}

// transact executes one operation.
func (c *caller) transact(op builders.TransactionOperation) {
	c.Helper()
	_, err := c.client.Transaction().ForOperations(c.ctx, op)
	testclient.Must(c, err)
}

// create creates a node.
func (c *caller) create(b builders.Create, path string) {
	c.Helper()
	_, err := b.ForPath(c.ctx, path, nil)
	testclient.Must(c, err)
}

// another returns a client that is not started.
func (c *caller) another(opts ...framework.Option) *framework.Client {
	c.Helper()
	return testclient.New(c, c.server.ConnectString(), append(opts,
		framework.WithRetryPolicy(retry.Forever(10*time.Millisecond)))...)
}

// provider is an ACLProvider that returns the same slices each time.
type provider struct{ forPath, byDefault []zk.ACL }

func (p provider) ACLForPath(string) []zk.ACL { return p.forPath }

func (p provider) DefaultACL() []zk.ACL { return p.byDefault }

func readers() []zk.ACL { return []zk.ACL{{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}} }

// reuse overwrites a slice, as the next use of it does.
func reuse[E any](s []E) {
	var zero E
	for i := range s {
		s[i] = zero
	}
}

// unchanged returns a check that v, a value with a slice of the caller, prints as it does now.
func unchanged(c *caller, v any) func() {
	before := fmt.Sprint(v)
	return func() {
		if now := fmt.Sprint(v); now != before {
			c.Errorf("got %s, want %s", now, before)
		}
	}
}

// entrance calls a function of the API with a slice, and reuses the slice when the function has returned. It returns a
// check that runs when the server is up.
type entrance func(c *caller) (check func())

// entrances are the declarations of api.txt that take a slice and keep it when they have returned.
var entrances = map[string][]entrance{
	"builders: func (BackgroundData) ForPath": {
		func(c *caller) func() {
			data := []byte("data")
			testclient.Must(c, c.client.Create().InBackground(c.note).ForPath(c.ctx, "/created", data))
			reuse(data)
			return func() {
				if ev := c.background(); string(ev.Data) != "data" {
					c.Errorf("the callback of the create got %q", ev.Data)
				}
				c.written("/created")
			}
		},
		func(c *caller) func() {
			data := []byte("data")
			testclient.Must(c, c.client.SetData().InBackground(c.note).ForPath(c.ctx, "/n", data))
			reuse(data)
			return func() {
				if ev := c.background(); string(ev.Data) != "data" {
					c.Errorf("the callback of the setData got %q", ev.Data)
				}
				c.written("/n")
			}
		},
	},
	"builders: func (BackgroundMultiRead) ForReads": {func(c *caller) func() {
		reads := []builders.Read{{Path: "/"}, {Path: "/n"}, {Path: "/", Children: true}}
		testclient.Must(c, c.client.MultiRead().InBackground(c.note).ForReads(c.ctx, reads...))
		reuse(reads)
		return func() {
			results := c.background().Reads
			if len(results) != 3 || results[1].Path != "/n" || string(results[1].Data) != "old" ||
				!slices.Contains(results[2].Children, "n") {
				c.Errorf("got %+v", results)
			}
		}
	}},
	"builders: func (BackgroundTransaction) ForOperations": {func(c *caller) func() {
		op := c.client.TransactionOp()
		ops := []builders.TransactionOperation{op.Check().ForPath("/n"), op.Create().ForPath("/made", nil)}
		testclient.Must(c, c.client.Transaction().InBackground(c.note).ForOperations(c.ctx, ops...))
		reuse(ops)
		return func() {
			results := c.background().Results
			if len(results) != 2 || results[0].ForPath != "/n" || results[1].ResultPath != "/made" {
				c.Errorf("got %+v", results)
			}
		}
	}},
	"builders: func (Transaction) Submit": {func(c *caller) func() {
		op := c.client.TransactionOp()
		ops := []builders.TransactionOperation{op.Check().ForPath("/n"), op.Create().ForPath("/made", nil)}
		f := c.client.Transaction().Submit(c.ctx, ops...)
		reuse(ops)
		return func() {
			results, err := f.Wait(c.ctx)
			testclient.Must(c, err)
			if len(results) != 2 || results[0].ForPath != "/n" || results[1].ResultPath != "/made" {
				c.Errorf("got %+v", results)
			}
		}
	}},
	"builders: func (Create) Submit": {func(c *caller) func() {
		data := []byte("data")
		f := c.client.Create().Submit(c.ctx, "/created", data)
		reuse(data)
		return func() {
			_, err := f.Wait(c.ctx)
			testclient.Must(c, err)
			c.written("/created")
		}
	}},
	"builders: func (TransactionCreate) ForPath": {func(c *caller) func() {
		data := []byte("data")
		op := c.client.TransactionOp().Create().ForPath("/created", data)
		reuse(data)
		return func() { c.transact(op); c.written("/created") }
	}},
	"builders: func (TransactionSetData) ForPath": {func(c *caller) func() {
		data := []byte("data")
		op := c.client.TransactionOp().SetData().ForPath("/n", data)
		reuse(data)
		return func() { c.transact(op); c.written("/n") }
	}},
	"builders: func (TransactionOp) Fence": {func(c *caller) func() {
		nodes := []string{"/n", "/"}
		op := c.client.TransactionOp().Fence(zk.ErrNoNode, nodes...)
		reuse(nodes)
		return func() { c.transact(op) }
	}},
	"builders: func (TransactionCreate) WithACL": {func(c *caller) func() {
		acl := readers()
		create := c.client.TransactionOp().Create().WithACL(acl...)
		op := create.ForPath("/created", nil)
		reuse(acl)
		return func() {
			c.transact(op)
			c.protected("/created", readers()...)
			c.transact(create.ForPath("/later", nil))
			c.protected("/later", readers()...)
		}
	}},
	"builders: func (CheckExists) WithACL": {func(c *caller) func() {
		acl := readers()
		check := unchanged(c, c.client.CheckExists().WithACL(acl...))
		reuse(acl)
		return check
	}},
	"builders: func (Create) WithACL": {func(c *caller) func() {
		acl := readers()
		create := c.client.Create().WithACL(acl...)
		reuse(acl)
		return func() { c.create(create, "/created"); c.protected("/created", readers()...) }
	}},
	"builders: func (Create) WithACLAppliedToParents": {func(c *caller) func() {
		acl := append(slices.Clone(builders.OpenACL), readers()...)
		want := slices.Clone(acl)
		create := c.client.Create().CreatingParentsIfNeeded().WithACLAppliedToParents(acl...)
		reuse(acl)
		return func() { c.create(create, "/parent/created"); c.protected("/parent", want...) }
	}},
	"builders: func (SetACL) WithACL": {func(c *caller) func() {
		acl := readers()
		testclient.Must(c, c.client.SetACL().WithACL(acl...).InBackground(c.note).ForPath(c.ctx, "/n"))
		reuse(acl)
		return func() { c.background(); c.protected("/n", readers()...) }
	}},
	"builders: func (Reconfig) Joining": {func(c *caller) func() {
		servers := []string{"server.2=a:1:2;3"}
		check := unchanged(c, c.client.Reconfig().Joining(servers...))
		reuse(servers)
		return check
	}},
	"builders: func (Reconfig) Leaving": {func(c *caller) func() {
		ids := []string{"2"}
		check := unchanged(c, c.client.Reconfig().Leaving(ids...))
		reuse(ids)
		return check
	}},
	"builders: func (Reconfig) WithNewMembers": {func(c *caller) func() {
		servers := []string{"server.2=a:1:2;3"}
		check := unchanged(c, c.client.Reconfig().WithNewMembers(servers...))
		reuse(servers)
		return check
	}},
	"builders: type FixedACL []zk.ACL": {func(c *caller) func() {
		acl := readers()
		option := framework.WithACLProvider(builders.FixedACL(acl))
		reuse(acl)
		return func() {
			client := c.another(option)
			testclient.Must(c, client.Start())
			_, err := client.Create().ForPath(c.ctx, "/created", nil)
			testclient.Must(c, err)
			c.protected("/created", readers()...)
		}
	}},
	"builders: type ACLProvider interface { ACLForPath": {func(c *caller) func() {
		acl := readers()
		client := c.another(framework.WithACLProvider(provider{forPath: acl}))
		testclient.Must(c, client.Start())
		testclient.Must(c, client.Create().InBackground(c.note).ForPath(c.ctx, "/created", nil))
		reuse(acl)
		return func() { c.background(); c.protected("/created", readers()...) }
	}},
	"builders: type ACLProvider interface { DefaultACL": {func(c *caller) func() {
		acl := readers()
		client := c.another(framework.WithACLProvider(provider{byDefault: acl}))
		testclient.Must(c, client.Start())
		testclient.Must(c, client.Create().InBackground(c.note).ForPath(c.ctx, "/created", nil))
		reuse(acl)
		return func() { c.background(); c.protected("/created", readers()...) }
	}},
	"codec: func (Raw) Encode": {func(c *caller) func() {
		q, err := queue.NewBuilder[[]byte](c.client, nil, codec.Raw{}, "/queue").BuildQueue()
		testclient.Must(c, err)
		testclient.Must(c, q.Start())
		c.Cleanup(func() { testclient.Must(c, q.Close()) })
		item := []byte("item")
		testclient.Must(c, q.Put(c.ctx, item))
		reuse(item)
		return func() {
			testclient.Must(c, q.FlushPuts(c.ctx))
			for _, name := range c.server.Children("/queue") {
				n, _ := c.server.Node("/queue/" + name)
				if !bytes.Contains(n.Data, []byte("item")) {
					c.Errorf("%s has %q", name, n.Data)
				}
			}
		}
	}},
	"framework: func WithAuth": {func(c *caller) func() {
		auth := []byte("user:password")
		option := framework.WithAuth("digest", auth)
		reuse(auth)
		return func() {
			client := c.another(option, framework.WithACLProvider(builders.FixedACL(zk.AuthACL(zk.PermAll))))
			testclient.Must(c, client.Start())
			_, err := client.Create().ForPath(c.ctx, "/created", nil)
			testclient.Must(c, err)
			c.protected("/created", zk.DigestACL(zk.PermAll, "user", "password")...)
		}
	}},
	"framework: func (*Client) AddAuth": {func(c *caller) func() {
		client := c.another(framework.WithACLProvider(builders.FixedACL(zk.AuthACL(zk.PermAll))))
		testclient.Must(c, client.Start())
		auth := []byte("user:password")
		testclient.Must(c, client.AddAuth("digest", auth))
		reuse(auth)
		return func() {
			_, err := client.Create().ForPath(c.ctx, "/created", nil)
			testclient.Must(c, err)
			testclient.Must(c, client.Reset())
			_, err = client.SetData().ForPath(c.ctx, "/created", nil)
			testclient.Must(c, err)
			c.protected("/created", zk.DigestACL(zk.PermAll, "user", "password")...)
		}
	}},
	"framework: func WithDefaultData": {func(c *caller) func() {
		data := []byte("data")
		option := framework.WithDefaultData(data)
		reuse(data)
		return func() {
			client := c.another(option)
			testclient.Must(c, client.Start())
			_, err := client.Create().ForPath(c.ctx, "/created", nil)
			testclient.Must(c, err)
			c.written("/created")
		}
	}},
	"framework: func (*Client) Fenced": {func(c *caller) func() {
		nodes := []string{"/n"}
		fenced := c.client.Fenced(c.ctx, zk.ErrNoNode, nodes...)
		reuse(nodes)
		return func() { c.create(fenced.Create(), "/created") }
	}},
	"framework: func (WatcherRemoveClient) Fenced": {func(c *caller) func() {
		nodes := []string{"/n"}
		fenced := c.client.WatcherRemoving().Fenced(c.ctx, zk.ErrNoNode, nodes...)
		reuse(nodes)
		return func() { c.create(fenced.Create(), "/created") }
	}},
	"recipes/locks: func NewInterProcessMultiLock": {func(c *caller) func() {
		members := []locks.InterProcessLock{locks.NewInterProcessMutex(c.client, "/lock")}
		multi := locks.NewInterProcessMultiLock(members...)
		reuse(members)
		return func() {
			hold, err := multi.Acquire(c.ctx)
			testclient.Must(c, err)
			testclient.Must(c, hold.Release(c.ctx))
		}
	}},
	"recipes/locks: func WithLockNodeData": {func(c *caller) func() {
		data := []byte("data")
		option := locks.WithLockNodeData(data)
		reuse(data)
		return func() {
			mutex := locks.NewInterProcessMutex(c.client, "/lock", option)
			hold, err := mutex.Acquire(c.ctx)
			testclient.Must(c, err)
			c.written(hold.Path())
			testclient.Must(c, hold.Release(c.ctx))
		}
	}},
	"recipes/locks: func WithLeaseData": {func(c *caller) func() {
		data := []byte("data")
		option := locks.WithLeaseData(data)
		reuse(data)
		return func() {
			semaphore := locks.NewInterProcessSemaphoreV2(c.client, "/semaphore", 1, option)
			lease, err := semaphore.Acquire(c.ctx)
			testclient.Must(c, err)
			got, err := lease.Data(c.ctx)
			testclient.Must(c, err)
			if string(got) != "data" {
				c.Errorf("got %q", got)
			}
			testclient.Must(c, lease.Return(c.ctx))
		}
	}},
	"recipes/queue: func (*DistributedQueue[T]) PutMulti": {func(c *caller) func() {
		q, err := queue.NewBuilder[string](c.client, nil, codec.Text{}, "/queue").BuildQueue()
		testclient.Must(c, err)
		got := make(chan []string, 1)
		q.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) { got <- ev.Items })
		testclient.Must(c, q.Start())
		c.Cleanup(func() { testclient.Must(c, q.Close()) })
		items := []string{"1", "2"}
		testclient.Must(c, q.PutMulti(c.ctx, items...))
		reuse(items)
		return func() {
			select {
			case items := <-got:
				if !slices.Equal(items, []string{"1", "2"}) {
					c.Errorf("the listener got %q", items)
				}
			case <-c.ctx.Done():
				c.Error("the listener was not called")
			}
		}
	}},
	"recipes/nodes: func NewPersistentNode": {func(c *caller) func() {
		data := []byte("data")
		n := nodes.NewPersistentNode(c.client, "/kept", builders.Ephemeral, data)
		reuse(data)
		return func() {
			testclient.Must(c, n.Start())
			testclient.Must(c, n.WaitForInitialCreate(c.ctx))
			c.written("/kept")
			testclient.Must(c, n.Close(c.ctx))
		}
	}},
	"recipes/nodes: func (*PersistentNode) SetData": {func(c *caller) func() {
		data := []byte("data")
		n := nodes.NewPersistentNode(c.client, "/kept", builders.Ephemeral, nil)
		testclient.Must(c, n.SetData(c.ctx, data))
		reuse(data)
		return func() {
			testclient.Must(c, n.Start())
			testclient.Must(c, n.WaitForInitialCreate(c.ctx))
			c.written("/kept")
			testclient.Must(c, n.Close(c.ctx))
		}
	}},
	"recipes/nodes: func NewPersistentTTLNode": {func(c *caller) func() {
		data := []byte("data")
		n := nodes.NewPersistentTTLNode(c.client, "/kept", time.Hour, data)
		reuse(data)
		return func() {
			testclient.Must(c, n.Start())
			testclient.Must(c, n.WaitForInitialCreate(c.ctx))
			c.written("/kept")
			testclient.Must(c, n.Close(c.ctx))
		}
	}},
	"discovery: func WithACL": {func(c *caller) func() {
		acl := readers()
		services := discovery.New[string](c.client, "/services", discovery.WithACL(acl...))
		reuse(acl)
		return func() {
			testclient.Must(c, services.Start())
			testclient.Must(c, services.Register(c.ctx, discovery.ServiceInstance[string]{Name: "a", ID: "1"}))
			c.protected("/services/a/1", readers()...)
		}
	}},
	"recipes/nodes: func WithACL": {func(c *caller) func() {
		acl := zk.WorldACL(zk.PermAll)
		option := nodes.WithACL(acl...)
		reuse(acl)
		return func() {
			n := nodes.NewPersistentNode(c.client, "/kept", builders.Ephemeral, nil, option)
			testclient.Must(c, n.Start())
			testclient.Must(c, n.WaitForInitialCreate(c.ctx))
			c.protected("/kept", zk.WorldACL(zk.PermAll)...)
			testclient.Must(c, n.Close(c.ctx))
		}
	}},
	"recipes/nodes: func NewGroupMember": {func(c *caller) func() {
		payload := []byte("data")
		m := nodes.NewGroupMember(c.client, "/group", "a", payload)
		reuse(payload)
		return func() {
			testclient.Must(c, m.Start())
			testclient.Must(c, m.Ready(c.ctx))
			c.written("/group/a")
			testclient.Must(c, m.Close(c.ctx))
		}
	}},
	"recipes/nodes: func (*GroupMember) SetThisData": {func(c *caller) func() {
		payload := []byte("data")
		m := nodes.NewGroupMember(c.client, "/group", "a", nil)
		testclient.Must(c, m.SetThisData(c.ctx, payload))
		reuse(payload)
		return func() {
			testclient.Must(c, m.Start())
			testclient.Must(c, m.Ready(c.ctx))
			c.written("/group/a")
			testclient.Must(c, m.Close(c.ctx))
		}
	}},
	"curatortest: func WithAddr": {func(c *caller) func() {
		addrs := []string{"127.0.0.1:0"}
		option := curatortest.WithAddr(addrs...)
		reuse(addrs)
		return func() {
			if addr := curatortest.NewServerT(c, option).Addr(); !strings.HasPrefix(addr, "127.0.0.1:") {
				c.Errorf("got %s", addr)
			}
		}
	}},
	"curatortest: func WithRequiredAuth": {func(c *caller) func() {
		schemes := []string{"digest"}
		option := curatortest.WithRequiredAuth(schemes...)
		reuse(schemes)
		return func() { curatortest.NewServerT(c, option) }
	}},
	"curatortest: type Rule struct { Ops": {func(c *caller) func() {
		ops := []string{"exists"}
		in := c.server.Faults().Add(curatortest.Rule{Ops: ops, Action: curatortest.ReplyError, Err: zk.ErrNoAuth})
		reuse(ops)
		return func() {
			if _, err := c.client.CheckExists().ForPath(c.ctx, "/n"); err == nil {
				c.Error("the rule has not acted")
			}
			in.Remove()
		}
	}},
}

// result stands for a field that the library fills.
const result = "a result"

// keepsNothing are the declarations of api.txt that take a slice and have forgotten it when they return, with the
// reason. What the program's own code returns to the library is a slice of its own, as the interface says.
var keepsNothing = map[string]string{
	"builders: func (Create) ForPath":                                 "it waits",
	"builders: func (SetData) ForPath":                                "it waits",
	"builders: func (MultiRead) ForReads":                             "it waits",
	"builders: func (Transaction) ForOperations":                      "it waits",
	"framework: func WithRevocationLists":                             "it copies",
	"builders: func (GzipCompression) Compress":                       "it copies",
	"builders: func (GzipCompression) Decompress":                     "it copies",
	"builders: type CompressionProvider interface { Compress":         "a slice of its own",
	"builders: type CompressionProvider interface { Decompress":       "a slice of its own",
	"codec: func (JSON[T]) Decode":                                    "it copies",
	"codec: func (Raw) Decode":                                        "it returns it",
	"codec: func (Text) Decode":                                       "it copies",
	"codec: type Codec[T] interface { Decode":                         "it gets one",
	"codec: type Codec[T] interface { Encode":                         "what it returns is copied into a node",
	"framework: func (*Client) Claim":                                 "its transactions copy",
	"framework: func (*Client) CreateEphemeral":                       "its transactions copy",
	"framework: func (WatcherRemoveClient) AddAuth":                   "as that of Client",
	"framework: func (WatcherRemoveClient) Claim":                     "as that of Client",
	"framework: func (WatcherRemoveClient) CreateEphemeral":           "as that of Client",
	"curatortest: func (*Cluster) Partition":                          "it reads it",
	"curatortest: func (*RealCluster) Partition":                      "it reads it",
	"curatortest: func FormatTrace":                                   "it reads it",
	"callbacks: type Event struct { ACL":                              result,
	"callbacks: type Event struct { Children":                         result,
	"callbacks: type Event struct { Data":                             result,
	"callbacks: type Event struct { Reads":                            result,
	"callbacks: type Event struct { Results":                          result,
	"callbacks: type ReadResult struct { Children":                    result,
	"callbacks: type ReadResult struct { Data":                        result,
	"curatortest: type Node struct { ACL":                             result,
	"curatortest: type Node struct { Children":                        result,
	"curatortest: type Node struct { Data":                            result,
	"framework: func OrderedBy":                                       "it gets a slice of its own",
	"framework: type Resolver interface { LookupHost":                 "it reads it",
	"framework: type Resolver interface { LookupSRV":                  "it reads it",
	"recipes/cache: type ChildData struct { Data":                     result,
	"recipes/cache: type PathChildrenCacheEvent struct { InitialData": result,
	"recipes/queue: type ItemError struct { Data":                     result,
	"recipes/queue: type PutEvent[T] struct { Items":                  result,
	"recipes/nodes: func (PersistentTTLNode) SetData":                 "as PersistentNode",
	"recipes/nodes: type MemberEvent struct { Payload":                result,
	"recipes/leader: func (*Leadership) Transaction":                  "it waits",
	"recipes/atomic: func (*DistributedAtomicValue) CompareAndSet":    "it waits, with a copy",
	"recipes/atomic: func (*DistributedAtomicValue) ForceSet":         "it waits, with a copy",
	"recipes/atomic: func (*DistributedAtomicValue) Initialize":       "it waits, with a copy",
	"recipes/atomic: func (*DistributedAtomicValue) TrySet":           "it waits, with a copy",
	"recipes/locks: func (*Hold) Transaction":                         "it waits",
	"recipes/locks: func (*Lease) Transaction":                        "it waits",
	"recipes/locks: func (*InterProcessSemaphoreV2) ReturnAll":        "it waits",
	"recipes/locks: func (StandardDriver) GetsTheLock":                "it reads it",
	"recipes/locks: type Driver interface { GetsTheLock":              "it gets one",
	"recipes/queue: func (*DistributedDelayQueue[T]) PutMulti":        "as DistributedQueue",
	"recipes/queue: func (*DistributedIDQueue[T]) PutMulti":           "as DistributedQueue",
	"discovery: func (*ServiceDiscovery[T]) Provider":                 "options",
	"discovery: type Strategy[T] interface { Choose":                  "a method that gets one",
	"sasl: type Exchange interface { Next":                            "it gets one, and its answer is written at once",
	"recipes/queue: func (*DistributedPriorityQueue[T]) PutMulti":     "as DistributedQueue",
	"recipes/queue: func (*Fence) Transaction":                        "it waits",
	"recipes/queue: func (*SimpleDistributedQueue) Offer":             "it waits",
	"recipes/shared: func (*SharedValue) AddListener":                 "a listener that gets one",
	"recipes/shared: func (*SharedValue) SetValue":                    "it copies",
	"recipes/shared: func (*SharedValue) TrySetValue":                 "it copies",
	"recipes/shared: func NewSharedValue":                             "it copies",
	"zkpath: func Join":                                               "it copies",
}

func TestSlicesOfTheCallerAreCloned(t *testing.T) {
	for name, calls := range entrances {
		for i, call := range calls {
			t.Run(fmt.Sprintf("%s %d", name, i+1), func(t *testing.T) {
				t.Parallel()
				server := curatortest.NewServerT(t)
				c := &caller{T: t, server: server, ctx: testenv.Context(t), events: make(chan callbacks.Event, 1)}
				c.client = c.another()
				testclient.Must(t, c.client.Start())
				c.create(c.client.Create(), "/old")
				_, err := c.client.Create().ForPath(c.ctx, "/n", []byte("old"))
				testclient.Must(t, err)
				testclient.Must(t, server.Stop())
				testenv.Eventually(t, func() bool { return !c.client.IsConnected() }, "the loss of the connection")
				check := call(c)
				testclient.Must(t, server.Restart())
				check()
			})
		}
	}
}

// slice is a slice, or a variadic parameter that is no option.
var slice = regexp.MustCompile(`\[\]|\.\.\.[^,)]*`)

// takesSlice returns the name of a declaration that takes a slice: a function with such a parameter, and a method of an
// interface, a field or a type with a slice.
func takesSlice(line string) (name string, ok bool) {
	pkg, declaration, _ := strings.Cut(line, ": ")
	rest := declaration
	switch kind, _, _ := strings.Cut(declaration, " "); {
	case kind == "func":
		from := 0
		if strings.HasPrefix(declaration, "func (") { // the receiver
			from = strings.Index(declaration, ") ") + 2
		}
		open := from + strings.Index(declaration[from:], "(")
		declaration, rest = declaration[:open], parameters(declaration[open:])
		declaration, _, _ = strings.Cut(declaration, "[T any]")
		declaration, _, _ = strings.Cut(declaration, "[Q ")
	case kind == "type" && strings.Contains(declaration, "{ "): // a method or a field
		before, member, _ := strings.Cut(declaration, "{ ")
		end := strings.IndexAny(member, " (")
		declaration, rest = before+"{ "+member[:end], member[end:]
	case kind != "type":
		return "", false
	}
	for _, found := range slice.FindAllString(rest, -1) {
		if !strings.HasSuffix(found, "Option") {
			return pkg + ": " + declaration, true
		}
	}
	return "", false
}

// parameters returns the part of s up to the bracket that closes its first one.
func parameters(s string) string {
	depth := 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return s[:i]
			}
		}
	}
	return s
}

// TestEveryEntranceOfASliceIsChecked fails for a declaration that takes a slice and is in no table above.
func TestEveryEntranceOfASliceIsChecked(t *testing.T) {
	data, err := os.ReadFile("testdata/api.txt")
	testclient.Must(t, err)
	known := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		name, ok := takesSlice(strings.TrimSpace(line))
		if !ok {
			continue
		}
		known[name] = true
		if entrances[name] == nil && keepsNothing[name] == "" {
			t.Errorf("%s is in neither table", name)
		}
	}
	for _, names := range []iter.Seq[string]{maps.Keys(entrances), maps.Keys(keepsNothing)} {
		for name := range names {
			if !known[name] {
				t.Errorf("%s takes no slice", name)
			}
		}
	}
}
