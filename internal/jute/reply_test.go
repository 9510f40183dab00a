package jute_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
)

func TestReplyHasTheBytesOfItsRecord(t *testing.T) {
	for _, tt := range replies {
		t.Run(tt.name, func(t *testing.T) {
			got := jute.AppendReply([]byte{}, tt.op, &tt.reply)
			if diff := cmp.Diff(unhex(tt.hex), got); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplyRoundTrips(t *testing.T) {
	for _, tt := range replies {
		t.Run(tt.name, func(t *testing.T) {
			var got jute.Reply
			if err := jute.DecodeReply(tt.op, unhex(tt.hex), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.reply, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplyForgetsWhatItHeldBefore(t *testing.T) {
	r := jute.Reply{Path: "/old", Data: []byte("old"), Stat: stat, Count: 1, Children: []string{"old"}}
	if err := jute.DecodeReply(jute.OpCreate, unhex("00000002 2f61"), &r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(jute.Reply{Path: "/a"}, r); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

func TestReplyIsEmptyWhenItCannotBeDecoded(t *testing.T) {
	r := jute.Reply{Path: "/old"}
	err := jute.DecodeReply(jute.OpCreate2, unhex("00000002 2f61 00"), &r)
	if !errors.Is(err, jute.ErrMarshalling) {
		t.Errorf("got %v, want ErrMarshalling", err)
	}
	if diff := cmp.Diff(jute.Reply{}, r); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

func TestReplyKeepsNoHoldOfTheFrame(t *testing.T) {
	body := unhex("00000002 7879", hexStat)
	var r jute.Reply
	if err := jute.DecodeReply(jute.OpGetData, body, &r); err != nil {
		t.Fatal(err)
	}
	clear(body)
	if got := string(r.Data); got != "xy" {
		t.Errorf("got %q after the frame was used again", got)
	}
}

func TestWatchReplyMayHaveABodyOrNone(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want error
	}{
		{name: "none"},
		{name: "code OK", hex: "00000000"},
		{name: "code", hex: "ffffff87", want: jute.ErrNoWatcher},
		{name: "half a code", hex: "0000", want: jute.ErrMarshalling},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, op := range []jute.Op{jute.OpAddWatch, jute.OpCheckWatches, jute.OpRemoveWatches} {
				var r jute.Reply
				if err := jute.DecodeReply(op, unhex(tt.hex), &r); !errors.Is(err, tt.want) {
					t.Errorf("%s: got %v, want %v", op, err, tt.want)
				}
			}
		})
	}
}

func TestReplyVectorsMayBeNull(t *testing.T) {
	tests := []struct {
		op   jute.Op
		hex  string
		want jute.Reply
	}{
		{op: jute.OpGetChildren, hex: "ffffffff"},
		{op: jute.OpGetChildren2, hex: "ffffffff" + hexStat, want: jute.Reply{Stat: stat}},
		{op: jute.OpGetACL, hex: "ffffffff" + hexStat, want: jute.Reply{Stat: stat}},
		{op: jute.OpWhoAmI, hex: "ffffffff"},
	}
	for _, tt := range tests {
		t.Run(tt.op.String(), func(t *testing.T) {
			var got jute.Reply
			if err := jute.DecodeReply(tt.op, unhex(tt.hex), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedResultHasTheCodeOfItsBody(t *testing.T) {
	var r jute.Reply
	body := unhex("ffffffff 00 00000000 ffffff9b", hexEnd)
	if err := jute.DecodeReply(jute.OpMulti, body, &r); err != nil {
		t.Fatal(err)
	}
	want := []jute.Result{{Op: jute.OpError, Code: jute.CodeNoNode}}
	if diff := cmp.Diff(want, r.Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestReplyToAnUnknownOpIsUnimplemented(t *testing.T) {
	var r jute.Reply
	for _, op := range []jute.Op{0, 10, 20, 55, jute.OpError} {
		if err := jute.DecodeReply(op, nil, &r); !errors.Is(err, jute.ErrUnimplemented) {
			t.Errorf("%s: got %v, want ErrUnimplemented", op, err)
		}
		if b := jute.AppendReply(nil, op, &r); b != nil {
			t.Errorf("%s: appended %x", op, b)
		}
	}
}

func TestDecodeReplyAllocatesOnlyTheResult(t *testing.T) {
	tests := []struct {
		name string
		op   jute.Op
		hex  string
		want float64
	}{
		{name: "getData: the data", op: jute.OpGetData, hex: "00000002 7879" + hexStat, want: 1},
		{name: "getData without data", op: jute.OpGetData, hex: "ffffffff" + hexStat},
		{name: "create: the path", op: jute.OpCreate, hex: "00000002 2f61", want: 1},
		{name: "create2: the path", op: jute.OpCreate2, hex: "00000002 2f61" + hexStat, want: 1},
		{name: "exists", op: jute.OpExists, hex: hexStat},
		{name: "setData", op: jute.OpSetData, hex: hexStat},
		{name: "delete", op: jute.OpDelete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			frame := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: 1, Zxid: 2})
			frame = append(frame, unhex(tt.hex)...)
			var r jute.Reply
			got := testing.AllocsPerRun(100, func() {
				h, body, err := jute.DecodeReplyHeader(frame)
				if err != nil || h.Code != jute.CodeOK || jute.DecodeReply(tt.op, body, &r) != nil {
					panic("not decoded")
				}
			})
			if got != tt.want {
				t.Errorf("%v allocations, want %v", got, tt.want)
			}
		})
	}
}

func TestAppendReplyDoesNotAllocateInABufferWithRoom(t *testing.T) {
	buf := make([]byte, 0, 4096)
	reply := jute.Reply{Path: "/a", Data: []byte("x"), Stat: zk.Stat{Version: 1}}
	for _, op := range []jute.Op{jute.OpCreate, jute.OpCreate2, jute.OpGetData, jute.OpExists} {
		if n := testing.AllocsPerRun(100, func() { jute.AppendReply(buf[:0], op, &reply) }); n != 0 {
			t.Errorf("%s: %v allocations", op, n)
		}
	}
}

func TestMultiReplyRefusesAResultItDoesNotKnow(t *testing.T) {
	for _, op := range []jute.Op{0, 55, jute.OpMulti, jute.OpGetACL} {
		var r jute.Reply
		body := append(jute.AppendInt32(nil, int32(op)), unhex("00 00000000", hexEnd)...)
		if err := jute.DecodeReply(jute.OpMulti, body, &r); !errors.Is(err, jute.ErrMarshalling) {
			t.Errorf("%s: got %v, want ErrMarshalling", op, err)
		}
	}
}
