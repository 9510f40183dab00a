package conformance_test

import (
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
)

// FuzzServer writes any bytes to a connection of the in-process server, with and without a handshake before them: they
// are answered or end the connection, and another client keeps its session, its watch and the node that is its alone.
func FuzzServer(f *testing.F) {
	for _, seed := range fuzzSeeds {
		b, err := hex.DecodeString(strings.ReplaceAll(seed, " ", ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(true, b)
		f.Add(false, b)
	}
	f.Fuzz(func(t *testing.T, shakeHands bool, input []byte) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		witness := connectInMemory(t, server)
		if _, err := witness.handshake(jute.ConnectRequest{TimeoutMs: int32(hour)}); err != nil {
			t.Fatal(err)
		}
		auth := jute.Auth{Scheme: schemeDigest, Auth: []byte("u1:p1")}
		if a, err := witness.ask(jute.OpAuth, jute.AppendAuth(nil, &auth)); err != nil || a.Code != jute.CodeOK {
			t.Fatalf("auth: %v, error %v", a.Code, err)
		}
		own := zk.DigestACL(zk.PermAll, "u1", "p1")
		witness.must(t, jute.Request{Op: jute.OpCreate, Path: "/own", ACL: own})
		witness.must(t, jute.Request{Op: jute.OpCreate, Path: "/own/node", Flags: ephemeral, Data: []byte("x"), ACL: own})
		witness.must(t, jute.Request{Op: jute.OpGetData, Path: "/own/node", Watch: true})

		attack(t, server, shakeHands, input)

		set := jute.Request{Op: jute.OpSetData, Path: "/own/node"}
		b, xid := witness.encode(set.Op, jute.AppendRequest(nil, "", &set))
		if _, err := witness.Write(b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int32{jute.XidNotification, xid} {
			if a, err := witness.readAnswer(); err != nil || a.Xid != want || a.Code != jute.CodeOK {
				t.Fatalf("received %+v, not xid %d, error %v", a.ReplyHeader, want, err)
			}
		}
		witness.ping(t)
	})
}

// fuzzSeeds are valid and invalid requests of clients.
var fuzzSeeds = []string{
	"",
	"72756f6b",           // ruok
	"776368702020202020", // wchp
	"7fffffff",
	"00000000",
	"00000008 00000001 0000004d", // no such operation
	"00000008 fffffffe 0000000b", // ping
	"00000008 00000001 fffffff5", // closeSession
	"0000000e 00000001 00000002 00000001 2f ffffffff",                               // cut off in the middle
	"00000011 00000001 00000002 00000001 2f ffffffff",                               // delete of the root
	"0000000e 00000001 00000004 00000001 2f 01",                                     // getData with a watch
	"00000011 00000001 0000006a 00000001 2f 00000001",                               // addWatch
	"00000011 00000001 0000000e ffffffff 01 ffffffff",                               // multi
	"0000000c 00000001 00000103 7fffffff",                                           // an impossible length
	"0000001f fffffffc 00000064 00000000 00000006 646967657374 00000005 75323a7032", // auth
	"0000002c 00000000 0000000000000000 00007530 0000000000000000 00000010 00000000000000000000000000000000",
	"00000031 00000001 00000001 00000002 2f61 00000000 00000001 0000001f 00000005 776f726c64 " +
		"00000006 616e796f6e65 00000001",
	"00000034 fffffff8 00000065 0000000000000000 00000001 00000002 2f61 00000001 00000002 2f62 00000001 00000002 2f63",
}

func connectInMemory(t *testing.T, server *curatortest.Server) *conn {
	t.Helper()
	c, err := server.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // the server may have ended it
	return &conn{Conn: c}
}

// attack sends the bytes, and returns when the server has read them and ended the connection.
func attack(t *testing.T, server *curatortest.Server, shakeHands bool, input []byte) {
	t.Helper()
	c := connectInMemory(t, server)
	if shakeHands {
		if _, err := c.handshake(jute.ConnectRequest{TimeoutMs: int32(hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		t.Fatal(err)
	}
	c.Write(input) //nolint:errcheck // the server may end the connection meanwhile
	if half, ok := c.Conn.(interface{ CloseWrite() error }); !ok {
		t.Fatalf("a %T cannot be closed for writing alone", c.Conn)
	} else if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("the server did not end the connection: %v", err)
	}
}
