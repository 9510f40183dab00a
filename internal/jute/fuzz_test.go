package jute_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gocurator/curator/internal/jute"
)

// What decodes must survive being sent again, except that a null vector becomes an empty one and an empty
// string of a reconfig becomes null, so equality is up to that.

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range requests {
		f.Add(int32(s.req.Op), unhex(s.hex))
	}
	f.Add(int32(jute.OpSetACL), unhex("00000002 2f61 7fffffff"))
	f.Add(int32(jute.OpMulti), unhex("0000000e 00 ffffffff", hexEnd))
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		var r jute.Request
		var err error
		if n := allocated(func() { r, err = jute.DecodeRequest(jute.Op(op), body) }); n > allowance(len(body)) {
			t.Fatalf("allocated %d bytes for %d", n, len(body))
		}
		if err != nil {
			return
		}
		again, err := jute.DecodeRequest(jute.Op(op), jute.AppendRequest(nil, "", &r))
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if diff := cmp.Diff(r, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("request (-first +again):\n%s", diff)
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	for _, s := range replies {
		f.Add(int32(s.op), unhex(s.hex))
	}
	f.Add(int32(jute.OpGetChildren), unhex("7fffffff"))
	f.Add(int32(jute.OpWhoAmI), unhex("00000002 00000000"))
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		var r, again jute.Reply
		var err error
		if n := allocated(func() { err = jute.DecodeReply(jute.Op(op), body, &r) }); n > allowance(len(body)) {
			t.Fatalf("allocated %d bytes for %d", n, len(body))
		}
		if err != nil {
			return
		}
		if err := jute.DecodeReply(jute.Op(op), jute.AppendReply(nil, jute.Op(op), &r), &again); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if diff := cmp.Diff(r, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("reply (-first +again):\n%s", diff)
		}
	})
}

func FuzzConnect(f *testing.F) {
	for _, r := range records() {
		f.Add(unhex(r.hex))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var request jute.ConnectRequest
		var response jute.ConnectResponse
		var requestErr, responseErr error
		if n := allocated(func() {
			request, requestErr = jute.DecodeConnectRequest(frame)
			response, responseErr = jute.DecodeConnectResponse(frame)
		}); n > allowance(len(frame)) {
			t.Fatalf("allocated %d bytes for %d", n, len(frame))
		}
		if requestErr == nil {
			again, err := jute.DecodeConnectRequest(jute.AppendConnectRequest(nil, &request))
			if diff := cmp.Diff(request, again); diff != "" || err != nil {
				t.Errorf("request (-first +again):\n%s%v", diff, err)
			}
		}
		if responseErr != nil {
			return
		}
		got := jute.AppendConnectResponse(nil, &response)
		if response.ReadOnly {
			frame = append(bytes.Clone(frame[:len(frame)-1]), 1) // any byte but 0 is true
		}
		if diff := cmp.Diff(frame, got); diff != "" {
			t.Errorf("response (-frame +again):\n%s", diff)
		}
	})
}
