package builders_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestGetData(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				succeed(t, w.create(t, client.Create(), "/n", []byte("data")))
				succeed(t, w.create(t, client.Create(), "/empty", []byte{}))
				var stored zk.Stat
				ev := succeed(t, w.getData(t, client.GetData().StoringStatIn(&stored), "/n"))
				equal(t, "data", string(ev.Data), "data")
				_, stat := tr.read(map[string]string{"": "/n", "ns": "/ns/n"}[ns])
				equal(t, "stored stat", stored, stat)
				if w == background {
					equal(t, "stat", ev.Stat, &stat)
				}
				ev = succeed(t, w.getData(t, client.GetData(), "/empty"))
				equal(t, "data of the empty node", string(ev.Data), "")

				before := stored
				ev = w.getData(t, client.GetData().StoringStatIn(&stored), "/none")
				wantErr(t, ev.Err, zk.ErrNoNode, "getData", "/none")
				equal(t, "stat after a failure", stored, before)
				if ev.Data != nil || ev.Stat != nil {
					t.Errorf("failure has data %q, stat %v", ev.Data, ev.Stat)
				}
			}
		})
	}
}

func TestSetData(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, tr := setUp(t, framework.WithNamespace(ns))
				succeed(t, w.create(t, client.Create(), "/n", nil))
				full := map[string]string{"": "/n", "ns": "/ns/n"}[ns]

				ev := succeed(t, w.setData(t, client.SetData(), "/n", []byte("one")))
				data, stat := tr.read(full)
				equal(t, "data", data, "one")
				equal(t, "stat", ev.Stat, &stat)

				ev = succeed(t, w.setData(t, client.SetData().WithVersion(1), "/n", []byte("two")))
				data, stat = tr.read(full)
				equal(t, "data", data, "two")
				equal(t, "stat", ev.Stat, &stat)

				ev = w.setData(t, client.SetData().WithVersion(1), "/n", []byte("three"))
				wantErr(t, ev.Err, zk.ErrBadVersion, "setData", "/n")
				if ev.Stat != nil {
					t.Errorf("failure has stat %v", ev.Stat)
				}
				data, _ = tr.read(full)
				equal(t, "data", data, "two")
				ev = w.setData(t, client.SetData(), "/none", []byte("data"))
				wantErr(t, ev.Err, zk.ErrNoNode, "setData", "/none")
			}
		})
	}
}

func TestSetDataIdempotent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		there       string // the data of a node that was written once, and has version 1
		version     int32
		wantErr     error
		wantVersion int32
	}{
		{"without a version it is written", "mine", -1, nil, 2},
		{"that version", "other", 1, nil, 2},
		{"the next version, with our data", "mine", 0, zk.ErrBadVersion, 1},
		{"the next version, with other data", "other", 0, zk.ErrBadVersion, 1},
		{"a later version, with our data", "mine", 2, zk.ErrBadVersion, 1},
		{"a version that was never, with our data", "mine", 7, zk.ErrBadVersion, 1},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					client, tr := setUp(t)
					tr.make("/n", "first")
					if _, err := tr.conn.Set(tr.root+"/n", []byte(tt.there), 0); err != nil {
						t.Fatal(err)
					}
					b := client.SetData().Idempotent().WithVersion(tt.version)
					ev := w.setData(t, b, "/n", []byte("mine"))
					_, stat := tr.read("/n")
					equal(t, "version", stat.Version, tt.wantVersion)
					if tt.wantErr != nil {
						wantErr(t, ev.Err, tt.wantErr, "setData", "/n")
						return
					}
					equal(t, "stat", succeed(t, ev).Stat, &stat)
				})
			}
			t.Run("absent", func(t *testing.T) {
				client, _ := setUp(t)
				ev := w.setData(t, client.SetData().Idempotent(), "/n", nil)
				wantErr(t, ev.Err, zk.ErrNoNode, "setData", "/n")
			})
			t.Run("may not be read", func(t *testing.T) { // the second step fails: CURATOR-673
				client, tr, proxy := setUpProxied(t)
				tr.make("/n", "mine")
				if _, err := tr.conn.SetACL(tr.root+"/n", zk.WorldACL(zk.PermWrite|zk.PermAdmin), -1); err != nil {
					t.Fatal(err)
				}
				proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter})
				ev := w.setData(t, client.SetData().Idempotent().WithVersion(0), "/n", nil)
				wantErr(t, ev.Err, zk.ErrNoAuth, "setData", "/n")
			})
		})
	}
}

// Clients take numbers from a counter. Without a lost answer each number is given out once.
func TestSetDataIdempotentGivesNoNumberTwice(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			tr.make("/n", "0")
			succeed(t, w.getData(t, client.GetData(), "/n")) // it does not hear of the write of another client
			if _, err := tr.conn.Set(tr.root+"/n", []byte("1"), 0); err != nil {
				t.Fatal(err)
			}
			take := client.SetData().Idempotent().WithVersion(0)
			wantErr(t, w.setData(t, take, "/n", []byte("1")).Err, zk.ErrBadVersion, "setData", "/n")
		})
	}
}

// The lost try is the first request of a client, which knows no transaction then.
func TestSetDataIdempotentFirstRequestLostSucceeds(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t)
			tr.make("/n", "first")
			cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter})
			succeed(t, w.setData(t, client.SetData().Idempotent().WithVersion(0), "/n", []byte("mine")))
			if cut.Hits() != 1 {
				t.Error("no try is lost")
			}
		})
	}
}

// The try is lost. Before the next one another client writes.
func TestSetDataIdempotentLostTryIsNotTheWriteOfAnother(t *testing.T) {
	t.Parallel()
	for name, writes := range map[string][]string{"other data": {"theirs"}, "a later version": {"theirs", "mine"}} {
		for _, w := range ways {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				client, tr, proxy := setUpProxied(t)
				tr.make("/n", "first")
				succeed(t, w.getData(t, client.GetData(), "/n"))
				proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutBefore})
				next := proxy.Faults().Add(curatortest.Rule{
					Ops: []string{"setData"}, Skip: 1, Count: 1, Action: curatortest.HoldRequest,
				})
				done := make(chan callbacks.Event, 1)
				go func() {
					done <- w.setData(t, client.SetData().Idempotent().WithVersion(0), "/n", []byte("mine"))
				}()
				if err := next.Wait(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
				for version, data := range writes {
					if _, err := tr.conn.Set(tr.root+"/n", []byte(data), int32(version)); err != nil {
						t.Fatal(err)
					}
				}
				next.Release()
				wantErr(t, receive(t, done).Err, zk.ErrBadVersion, "setData", "/n")
			})
		}
	}
}

// The try is lost. The node was written before with the data and the version that the try would leave.
func TestSetDataIdempotentLostTryIsNotAnOlderWrite(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t)
			tr.make("/n", "first")
			if _, err := tr.conn.Set(tr.root+"/n", []byte("mine"), 0); err != nil {
				t.Fatal(err)
			}
			succeed(t, w.getData(t, client.GetData(), "/n")) // the client has seen that
			cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutBefore})
			ev := w.setData(t, client.SetData().Idempotent().WithVersion(0), "/n", []byte("mine"))
			wantErr(t, ev.Err, zk.ErrBadVersion, "setData", "/n")
			if cut.Hits() != 1 {
				t.Error("no try is lost")
			}
		})
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	data := []byte("hello, hello, hello, hello")
	packed, err := builders.GzipCompression{}.Compress("", data)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name         string
		byClient     framework.Option
		on, off      bool // by the builders
		packed, read bool
	}{
		{"not by default", framework.WithoutCompression(), false, false, false, false},
		{"by the builder", framework.WithoutCompression(), true, false, true, true},
		{"by the client", framework.WithCompression(), false, false, true, true},
		{"not against the builder", framework.WithCompression(), false, true, false, false},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					client, tr, proxy := setUpProxied(t, tt.byClient, framework.WithDefaultData(data))
					create, set, get := client.Create(), client.SetData(), client.GetData()
					op := client.TransactionOp()
					createOp, setOp := op.Create(), op.SetData()
					switch {
					case tt.on:
						create, set, get = create.Compressed(), set.Compressed(), get.Decompressed()
						createOp, setOp = createOp.Compressed(), setOp.Compressed()
					case tt.off:
						create, set, get = create.Uncompressed(), set.Uncompressed(), get.Undecompressed()
						createOp, setOp = createOp.Uncompressed(), setOp.Uncompressed()
					}
					succeed(t, w.create(t, create, "/created", data))
					succeed(t, w.create(t, create, "/default", nil))
					tr.make("/or-set", "")
					succeed(t, w.create(t, create.OrSetData(), "/or-set", data))
					tr.make("/set", "")
					succeed(t, w.setData(t, set, "/set", data))
					tr.make("/op-set", "")
					succeed(t, w.transaction(t, client.Transaction(),
						createOp.ForPath("/op-created", data),
						createOp.ForPath("/op-default", nil),
						setOp.ForPath("/op-set", data)))
					want := data
					if tt.packed {
						want = packed
					}
					for _, name := range tr.children("/") {
						stored, _ := tr.read("/" + name)
						equal(t, "stored in "+name, stored, string(want))
						ev := succeed(t, w.getData(t, get, "/"+name))
						equal(t, "read from "+name, string(ev.Data), string(data))
					}
					ev := succeed(t, w.create(t, create.Idempotent(), "/created", data))
					equal(t, "name of what is there already", ev.Name, "/created")
					b := set.Idempotent().WithVersion(0)
					lost := proxy.Faults().Add(curatortest.Rule{
						Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter,
					})
					succeed(t, w.setData(t, b, "/created", data))
					equal(t, "lost answers", lost.Hits(), 1)
				})
			}
		})
	}
}

// Data that does not decompress is handed over as it is, with the error.
func TestDataThatDoesNotDecompress(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, data := range []string{"plain text", ""} {
				client, tr := setUp(t)
				tr.make("/n", data)
				var stored zk.Stat
				ev := w.getData(t, client.GetData().Decompressed().StoringStatIn(&stored), "/n")
				wantErr(t, ev.Err, framework.ErrDataInconsistency, "getData", "/n")
				if ev.Data == nil || string(ev.Data) != data {
					t.Errorf("data is %q, want it as it is", ev.Data)
				}
				_, stat := tr.read("/n")
				equal(t, "stored stat", stored, stat)
			}
		})
	}
}

var errProvider = errors.New("provider fails")

// provider is a compression provider that fails on demand, and reports its paths.
type provider struct {
	err   error
	paths chan string
}

func (p provider) Compress(path string, data []byte) ([]byte, error) {
	p.paths <- "compress " + path
	return append([]byte("packed "), data...), p.err
}

func (p provider) Decompress(path string, data []byte) ([]byte, error) {
	p.paths <- "decompress " + path
	return bytes.TrimPrefix(data, []byte("packed ")), p.err
}

func TestCompressionProviderIsGivenThePathWithoutNamespace(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			p := provider{paths: make(chan string, 10)}
			client, tr := setUp(t, framework.WithNamespace("ns"), framework.WithCompression(),
				framework.WithCompressionProvider(p))
			succeed(t, w.create(t, client.Create(), "/n", []byte("data")))
			equal(t, "reported", <-p.paths, "compress /n")
			stored, _ := tr.read("/ns/n")
			equal(t, "stored", stored, "packed data")
			equal(t, "read", string(succeed(t, w.getData(t, client.GetData(), "/n")).Data), "data")
			equal(t, "reported", <-p.paths, "decompress /n")
		})
	}
}

func TestCompressionProviderThatFails(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			p := provider{paths: make(chan string, 10), err: errProvider}
			client, tr := setUp(t, framework.WithCompressionProvider(p))
			tr.make("/n", "as it is")
			wantErr(t, w.create(t, client.Create().Compressed(), "/x", nil).Err, errProvider, "create", "/x")
			wantErr(t, w.setData(t, client.SetData().Compressed(), "/n", nil).Err, errProvider, "setData", "/n")
			op := client.TransactionOp()
			ev := w.transaction(t, client.Transaction(), op.Create().Compressed().ForPath("/x", nil))
			wantErr(t, ev.Err, errProvider, "create", "/x")
			ev = w.transaction(t, client.Transaction(), op.SetData().Compressed().ForPath("/n", nil))
			wantErr(t, ev.Err, errProvider, "setData", "/n")
			ev = w.getData(t, client.GetData().Decompressed(), "/n")
			wantErr(t, ev.Err, errProvider, "getData", "/n")
			equal(t, "data", string(ev.Data), "as it is")
			equal(t, "nodes", tr.children("/"), []string{"n"})
		})
	}
}

// The client compares the data after a lost answer, and may do so when the caller's context has ended. Only the race
// detector notices a read of the caller's data then.
func TestDataMayBeReusedWhenTheContextHasEnded(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "old")
	calls := map[string]func(ctx context.Context, data []byte) error{
		"create2": func(ctx context.Context, data []byte) error {
			_, err := client.Create().Idempotent().ForPath(ctx, "/created", data)
			return err
		},
		"setData": func(ctx context.Context, data []byte) error {
			_, err := client.SetData().WithVersion(0).Idempotent().ForPath(ctx, "/n", data)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			proxy.Faults().Add(curatortest.Rule{Ops: []string{name}, Action: curatortest.CutAfter, Count: 1})
			held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply, Count: 1})
			ctx, cancel := context.WithCancel(testenv.Context(t))
			go func() { _ = held.Wait(ctx); cancel() }()
			data := []byte("old")
			if err := call(ctx, data); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			answered := make(chan error, 1)
			go func() {
				held.Release()
				_, err := client.CheckExists().ForPath(testenv.Context(t), "/n")
				answered <- err
			}()
			for {
				select {
				case err := <-answered:
					testclient.Must(t, err)
					return
				default:
					data[0]++
				}
			}
		})
	}
}
