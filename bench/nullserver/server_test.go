package nullserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
)

func TestGoZooKeeperClient(t *testing.T) {
	srv := newTestServer(t)
	c := connect(t, srv.Addr())

	data, stat, err := c.Get("/any")
	if err != nil || len(data) != PayloadSize || stat.DataLength != PayloadSize {
		t.Errorf("Get = %d bytes, %+v, %v", len(data), stat, err)
	}
	if path, err := c.Create("/a/b", []byte("x"), 0, zk.WorldACL(zk.PermAll)); path != "/a/b" || err != nil {
		t.Errorf("Create = %q, %v", path, err)
	}
	if path, err := c.CreateContainer("/c", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)); path != "/c" || err != nil {
		t.Errorf("CreateContainer = %q, %v", path, err)
	}
	if ok, _, err := c.Exists("/a"); !ok || err != nil {
		t.Errorf("Exists = %t, %v", ok, err)
	}
	if _, err := c.Set("/a", nil, 7); err != nil {
		t.Errorf("Set: %v", err)
	}
	if kids, _, err := c.Children("/a"); len(kids) != 0 || err != nil {
		t.Errorf("Children = %v, %v", kids, err)
	}
	if acl, _, err := c.GetACL("/a"); !cmp.Equal(acl, zk.WorldACL(zk.PermAll)) || err != nil {
		t.Errorf("GetACL = %v, %v", acl, err)
	}
	if path, err := c.Sync("/a"); path != "/a" || err != nil {
		t.Errorf("Sync = %q, %v", path, err)
	}
	if err := c.Delete("/a", -1); err != nil {
		t.Errorf("Delete: %v", err)
	}
	results, err := c.Multi(
		&zk.CreateRequest{Path: "/m", Acl: zk.WorldACL(zk.PermAll)},
		&zk.SetDataRequest{Path: "/m", Version: -1},
		&zk.DeleteRequest{Path: "/m", Version: -1},
	)
	if err != nil || len(results) != 3 || results[0].String != "/m" {
		t.Errorf("Multi = %+v, %v", results, err)
	}
}

func TestEveryOpcode(t *testing.T) {
	tests := map[jute.Op]jute.Request{
		jute.OpMulti: {Ops: []jute.Request{
			{Op: jute.OpCreate2, Path: "/m"}, {Op: jute.OpCreateTTL, Path: "/m"}, {Op: jute.OpCheck, Path: "/m"},
		}},
		jute.OpMultiRead: {Ops: []jute.Request{{Op: jute.OpGetData, Path: "/m"}, {Op: jute.OpGetChildren, Path: "/m"}}},
		jute.OpReconfig:  {Reconfig: &jute.Reconfig{}},
	}
	for op := jute.Op(1); op <= jute.OpWhoAmI; op++ {
		if _, err := jute.DecodeRequest(op, nil); errors.Is(err, jute.ErrUnimplemented) || op == jute.OpSASL {
			continue // no such request, or one that this server does not support
		}
		t.Run(op.String(), func(t *testing.T) {
			req := tests[op]
			req.Op, req.Path = op, "/a"
			body, code := appendBody(nil, op, jute.AppendRequest(nil, "", &req))
			if code != jute.CodeOK {
				t.Fatalf("code %v", code)
			}
			var reply jute.Reply
			if err := jute.DecodeReply(op, body, &reply); err != nil {
				t.Fatal(err)
			}
			if len(reply.Results) != len(req.Ops) {
				t.Errorf("%d results for %d operations", len(reply.Results), len(req.Ops))
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	for _, op := range []jute.Op{0, jute.OpSASL, -5, 9999, jute.OpWhoAmI + 1} {
		if _, code := appendBody(nil, op, nil); code != jute.CodeUnimplemented {
			t.Errorf("%v: code %v", op, code)
		}
	}
	cut := []byte{0, 0, 0, 9, '/'}
	for _, op := range []jute.Op{jute.OpCreate, jute.OpCreate2, jute.OpMulti} {
		if _, code := appendBody(nil, op, cut); code != jute.CodeMarshallingError {
			t.Errorf("%v: code %v", op, code)
		}
	}

	tests := []struct {
		name  string
		bytes []byte
	}{
		{name: "no connect request", bytes: []byte{0, 0, 0, 1, 0}},
		{name: "frame too long", bytes: []byte{0x7f, 0xff, 0xff, 0xff}},
		{name: "request without header", bytes: append(connectFrame(), 0, 0, 0, 2, 0, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, newTestServer(t).Addr())
			if _, err := c.Write(tt.bytes); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(c); err != nil { // the connection ends when the server closes it
				t.Error(err)
			}
		})
	}
}

// TestAnyCut sends the frames of a session cut at every place: a read may end anywhere.
func TestAnyCut(t *testing.T) {
	srv := newTestServer(t)
	in := connectFrame()
	in = appendRequest(in, 1, &jute.Request{Op: jute.OpCreate, Path: "/n", Data: make([]byte, 40)})
	in = appendRequest(in, 2, &jute.Request{Op: jute.OpGetData, Path: "/n"})
	in = appendRequest(in, 3, &jute.Request{Op: jute.OpCloseSession})
	var want []byte
	for cut := 1; cut <= len(in); cut++ {
		c := dial(t, srv.Addr())
		for _, part := range [][]byte{in[:cut], in[cut:]} {
			if _, err := c.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		got, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		clear(got[12:20]) // the session id
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("cut at %d: answer differs", cut)
		}
	}
}

func TestLongFrame(t *testing.T) {
	c := dial(t, newTestServer(t).Addr())
	out := appendRequest(connectFrame(), 1, &jute.Request{Op: jute.OpSetData, Path: "/n", Data: make([]byte, 1<<20)})
	out = appendRequest(out, 2, &jute.Request{Op: jute.OpCloseSession})
	if _, err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || len(got) != 4+37+4+16+68+4+16 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestSpawn(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asServer+"=1")
	p, err := Spawn(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, _, err := connect(t, p.Addr()).Get("/a"); err != nil {
		t.Error(err)
	}
	if p.cmd.Process.Pid == os.Getpid() {
		t.Error("the server is not a process of its own")
	}
}

func TestSpawnFails(t *testing.T) {
	if _, err := Spawn(t.Context(), exec.Command("/nonexistent")); err == nil {
		t.Error("a program that is not there was started")
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^$") // ends without an address
	if _, err := Spawn(t.Context(), cmd); err == nil {
		t.Error("a program that is no server was taken for one")
	}
}

// BenchmarkPipelined measures the server alone: frames of getData, many in flight, written and read as whole buffers.
func BenchmarkPipelined(b *testing.B) {
	const batch = 1000
	srv, err := New()
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(connectFrame()); err != nil {
		b.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, 4+37); err != nil {
		b.Fatal(err)
	}
	var out []byte
	for i := range batch {
		out = appendRequest(out, int32(i), &jute.Request{Op: jute.OpGetData, Path: "/bench/data"})
	}
	answers := int64(batch * (4 + 16 + 4 + PayloadSize + 68))
	in := bufio.NewReaderSize(c, 256<<10)
	b.ReportAllocs()
	flight := make(chan struct{}, 8) // batches
	done := make(chan error, 1)
	batches := b.N/batch + 1
	b.ResetTimer()
	go func() {
		for range batches {
			if _, err := io.CopyN(io.Discard, in, answers); err != nil {
				done <- err
				return
			}
			<-flight
		}
		done <- nil
	}()
	for range batches {
		flight <- struct{}{}
		if _, err := c.Write(out); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(batches*batch)/b.Elapsed().Seconds(), "answers/s")
}

func newTestServer(t *testing.T) *Server {
	t.Helper()
	srv, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// connect returns a client with a session.
func connect(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			return c
		}
	}
	t.Fatal("no session")
	return nil
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func connectFrame() []byte {
	body := jute.AppendConnectRequest(nil, &jute.ConnectRequest{
		TimeoutMs: 10_000, Password: make([]byte, jute.PasswordSize), HasReadOnly: true,
	})
	return appendLength(body)
}

func appendRequest(b []byte, xid int32, r *jute.Request) []byte {
	body := jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: xid, Op: r.Op})
	return append(b, appendLength(jute.AppendRequest(body, "", r))...)
}

func appendLength(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
