package jute_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/gocurator/curator/internal/jute"
)

// allocated returns how many bytes of heap f takes, garbage included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// allowance is what decoding n bytes may allocate. The largest element for its size is a multi's result, 9
// bytes in the frame that become 144, and growing a slice leaves several times its length as garbage. The
// constant is for whatever else the process does meanwhile; a believed length would be far beyond it.
func allowance(n int) uint64 { return uint64(n)*128 + 256<<10 }

func TestImpossibleLengthsAreRefusedWithoutMemory(t *testing.T) {
	lengths := []struct{ name, hex string }{
		{name: "huge", hex: "7fffffff"},
		{name: "one more than there is", hex: "00000009"},
		{name: "below null", hex: "fffffffe"},
		{name: "least", hex: "80000000"},
	}
	values := []struct {
		name string
		read func(d *jute.Decoder)
	}{
		{name: "string", read: func(d *jute.Decoder) { _ = d.String() }},
		{name: "buffer", read: func(d *jute.Decoder) { d.Buffer() }},
		{name: "strings", read: func(d *jute.Decoder) { d.Strings() }},
		{name: "ACLs", read: func(d *jute.Decoder) { d.ACLs() }},
	}
	for _, value := range values {
		for _, length := range lengths {
			t.Run(value.name+" of length "+length.name, func(t *testing.T) {
				b := unhex(length.hex, "0000000000000000")
				var err error
				got := allocated(func() {
					d := jute.NewDecoder(b)
					value.read(&d)
					err = d.Err()
				})
				if !errors.Is(err, jute.ErrMarshalling) {
					t.Errorf("got %v, want ErrMarshalling", err)
				}
				if got > allowance(len(b)) {
					t.Errorf("allocated %d bytes", got)
				}
			})
		}
	}
}

func TestCountMustFitTheRemainingBytes(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		read func(d *jute.Decoder)
	}{
		{
			"strings", "00000002 00000000 000000",
			func(d *jute.Decoder) { d.Strings() },
		},
		{
			"ACLs", "00000001 00000000 00000000 000000",
			func(d *jute.Decoder) { d.ACLs() },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := jute.NewDecoder(unhex(tt.hex))
			if tt.read(&d); !errors.Is(d.Err(), jute.ErrMarshalling) {
				t.Errorf("one byte short: got %v, want ErrMarshalling", d.Err())
			}
			d = jute.NewDecoder(unhex(tt.hex, "00"))
			if tt.read(&d); d.Err() != nil {
				t.Errorf("just enough: got %v", d.Err())
			}
		})
	}
}

func TestTruncatedRequestIsAnErrorAtEveryByte(t *testing.T) {
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			body := unhex(tt.hex)
			for n := range body {
				if got, err := jute.DecodeRequest(tt.req.Op, body[:n]); !errors.Is(err, jute.ErrMarshalling) {
					t.Errorf("%d of %d bytes: got %+v, %v", n, len(body), got, err)
				}
			}
		})
	}
}

func TestTruncatedReplyIsAnErrorAtEveryByte(t *testing.T) {
	for _, tt := range replies {
		t.Run(tt.name, func(t *testing.T) {
			body := unhex(tt.hex)
			for n := range body {
				if n == 0 && tt.op == jute.OpAddWatch {
					continue // an answer without a body is as good
				}
				var r jute.Reply
				if err := jute.DecodeReply(tt.op, body[:n], &r); !errors.Is(err, jute.ErrMarshalling) {
					t.Errorf("%d of %d bytes: got %+v, %v", n, len(body), r, err)
				}
			}
		})
	}
}

func TestTruncatedRecordIsAnErrorAtEveryByte(t *testing.T) {
	for _, tt := range records() {
		t.Run(tt.name, func(t *testing.T) {
			body := unhex(tt.hex)
			for n := range body {
				if n == len(body)-1 && (tt.name == "connect request" || tt.name == "connect response") {
					continue // the record of a peer that knows no read-only servers
				}
				if got, err := tt.decode(body[:n]); !errors.Is(err, jute.ErrMarshalling) {
					t.Errorf("%d of %d bytes: got %+v, %v", n, len(body), got, err)
				}
			}
		})
	}
}

func TestMultiOfManyTinyElementsStaysInProportion(t *testing.T) {
	var results, ops []byte
	for range 10_000 {
		results = append(results, unhex("00000002 00 00000000")...)
		ops = append(ops, unhex("00000002 00 ffffffff  ffffffff 00000000")...)
	}
	results, ops = append(results, unhex(hexEnd)...), append(ops, unhex(hexEnd)...)

	var reply jute.Reply
	var err error
	got := allocated(func() { err = jute.DecodeReply(jute.OpMulti, results, &reply) })
	if got > allowance(len(results)) {
		t.Errorf("allocated %d bytes for %d", got, len(results))
	}
	if err != nil || len(reply.Results) != 10_000 {
		t.Errorf("got %d results, %v", len(reply.Results), err)
	}
	var request jute.Request
	got = allocated(func() { request, err = jute.DecodeRequest(jute.OpMulti, ops) })
	if got > allowance(len(ops)) {
		t.Errorf("allocated %d bytes for %d", got, len(ops))
	}
	if err != nil || len(request.Ops) != 10_000 {
		t.Errorf("got %d operations, %v", len(request.Ops), err)
	}
}
