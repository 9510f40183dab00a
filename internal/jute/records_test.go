package jute_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
)

const hexPassword = "00000010 000102030405060708090a0b0c0d0e0f"

// A record appends itself and reads itself back; the closures hide which type it is.
type record struct {
	name   string
	value  any
	hex    string
	encode func() []byte
	decode func(b []byte) (any, error)
}

func records() []record {
	password := unhex(hexPassword)[4:]
	connect := jute.ConnectRequest{
		LastZxidSeen: 5, TimeoutMs: 4000, SessionID: 0x1122, Password: password, ReadOnly: true, HasReadOnly: true,
	}
	oldConnect := connect
	oldConnect.ReadOnly, oldConnect.HasReadOnly = false, false
	accept := jute.ConnectResponse{TimeoutMs: 4000, SessionID: 0x1122, Password: password, HasReadOnly: true}
	oldAccept := accept
	oldAccept.HasReadOnly = false
	event := jute.WatcherEvent{Type: zk.EventNodeDeleted, State: zk.StateSyncConnected, Path: "/a"}
	auth := jute.Auth{Scheme: "digest", Auth: []byte("u:p")}
	watches := jute.SetWatches{
		RelativeZxid: 9, Data: []string{"/d"}, Exist: []string{"/e"}, Child: []string{},
	}
	watches2 := watches
	watches2.Persistent, watches2.Recursive = []string{"/p"}, []string{"/r", "/s"}
	hexWatches := "0000000000000009  00000001 00000002 2f64  00000001 00000002 2f65  00000000"

	return []record{
		{
			"connect request", connect,
			"00000000 0000000000000005 00000fa0 0000000000001122" + hexPassword + "01",
			func() []byte { return jute.AppendConnectRequest(nil, &connect) },
			func(b []byte) (any, error) { return jute.DecodeConnectRequest(b) },
		},
		{
			"connect request without read-only", oldConnect,
			"00000000 0000000000000005 00000fa0 0000000000001122" + hexPassword,
			func() []byte { return jute.AppendConnectRequest(nil, &oldConnect) },
			func(b []byte) (any, error) { return jute.DecodeConnectRequest(b) },
		},
		{
			"connect response", accept,
			"00000000 00000fa0 0000000000001122" + hexPassword + "00",
			func() []byte { return jute.AppendConnectResponse(nil, &accept) },
			func(b []byte) (any, error) { return jute.DecodeConnectResponse(b) },
		},
		{
			"connect response without read-only", oldAccept,
			"00000000 00000fa0 0000000000001122" + hexPassword,
			func() []byte { return jute.AppendConnectResponse(nil, &oldAccept) },
			func(b []byte) (any, error) { return jute.DecodeConnectResponse(b) },
		},
		{
			"watcher event", event,
			"00000002 00000003 00000002 2f61",
			func() []byte { return jute.AppendWatcherEvent(nil, &event) },
			func(b []byte) (any, error) { return jute.DecodeWatcherEvent(b) },
		},
		{
			"auth", auth,
			"00000000 00000006 646967657374 00000003 753a70",
			func() []byte { return jute.AppendAuth(nil, &auth) },
			func(b []byte) (any, error) { return jute.DecodeAuth(b) },
		},
		{
			"setWatches", watches,
			hexWatches,
			func() []byte { return jute.AppendSetWatches(nil, &watches) },
			func(b []byte) (any, error) { return jute.DecodeSetWatches(b) },
		},
		{
			"setWatches2", watches2,
			hexWatches + "00000001 00000002 2f70  00000002 00000002 2f72 00000002 2f73",
			func() []byte { return jute.AppendSetWatches2(nil, &watches2) },
			func(b []byte) (any, error) { return jute.DecodeSetWatches2(b) },
		},
		{
			"request header",
			jute.RequestHeader{Xid: -2, Op: jute.OpPing},
			"fffffffe 0000000b",
			func() []byte { return jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: -2, Op: jute.OpPing}) },
			func(b []byte) (any, error) {
				h, _, err := jute.DecodeRequestHeader(b)
				return h, err
			},
		},
		{
			"reply header",
			jute.ReplyHeader{Xid: 1, Zxid: 2, Code: jute.CodeNoNode},
			"00000001 0000000000000002 ffffff9b",
			func() []byte {
				return jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: 1, Zxid: 2, Code: jute.CodeNoNode})
			},
			func(b []byte) (any, error) {
				h, _, err := jute.DecodeReplyHeader(b)
				return h, err
			},
		},
	}
}

func TestRecordRoundTripsThroughItsBytes(t *testing.T) {
	for _, tt := range records() {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(unhex(tt.hex), tt.encode()); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
			got, err := tt.decode(unhex(tt.hex))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.value, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeaderGivesTheBodyBehindIt(t *testing.T) {
	_, body, err := jute.DecodeRequestHeader(unhex("00000001 00000009", "00000002 2f61"))
	if diff := cmp.Diff(unhex("00000002 2f61"), body); diff != "" || err != nil {
		t.Errorf("request body (-want +got):\n%s%v", diff, err)
	}
	_, body, err = jute.DecodeReplyHeader(unhex("00000001 0000000000000002 00000000", "00000002 2f61"))
	if diff := cmp.Diff(unhex("00000002 2f61"), body); diff != "" || err != nil {
		t.Errorf("reply body (-want +got):\n%s%v", diff, err)
	}
}

func TestConnectResponseIsNothingElse(t *testing.T) {
	tests := []struct {
		name string
		hex  string
	}{
		{name: "nothing"},
		{name: "error frame", hex: "ffffffff ffffffffffffffff ffffff84"},
		{name: "error frame with a body", hex: "00000001 0000000000000002 00000000" + hexPassword},
		{name: "notification", hex: "ffffffff ffffffffffffffff 00000000 00000001 00000003 00000002 2f61"},
		{name: "a byte too many", hex: "00000000 00000fa0 0000000000001122" + hexPassword + "00 00"},
		{name: "short password", hex: "00000000 00000fa0 0000000000001122 00000001 00"},
		{name: "no password", hex: "00000000 00000fa0 0000000000001122 ffffffff"},
		{name: "other protocol", hex: "00000001 00000fa0 0000000000001122" + hexPassword},
		{name: "negative timeout", hex: "00000000 ffffffff 0000000000001122" + hexPassword},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := jute.DecodeConnectResponse(unhex(tt.hex))
			if !errors.Is(err, jute.ErrMarshalling) {
				t.Errorf("got %+v, %v, want ErrMarshalling", got, err)
			}
		})
	}
}

func TestConnectResponseOfALostSession(t *testing.T) {
	got, err := jute.DecodeConnectResponse(make([]byte, 0, 37))
	if err == nil {
		t.Errorf("empty frame gave %+v", got)
	}
	frame := unhex("00000000 00000000 0000000000000000 00000010 00000000000000000000000000000000 00")
	got, err = jute.DecodeConnectResponse(frame)
	want := jute.ConnectResponse{Password: make([]byte, jute.PasswordSize), HasReadOnly: true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("response (-want +got):\n%s%v", diff, err)
	}
}

func TestNilWatchListsAreSentEmpty(t *testing.T) {
	got := jute.AppendSetWatches2(nil, &jute.SetWatches{RelativeZxid: 1})
	want := unhex("0000000000000001 00000000 00000000 00000000 00000000 00000000")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
}
