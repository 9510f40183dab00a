package curatortest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/gocurator/curator/internal/jute"
)

// A plain slice is the model of the queue of requests.
func TestPendingRequests(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var l link
	var model []int32
	for step := range 200_000 {
		if rnd.IntN(100) < 50 || len(model) == 0 {
			xid := int32(step)
			if rnd.IntN(10) == 0 {
				xid = jute.XidPing
			}
			l.push(request{message: message{xid: xid}})
			model = append(model, xid)
			continue
		}
		i := 0
		if rnd.IntN(10) == 0 {
			i = rnd.IntN(len(model))
		}
		xid := model[i]
		i = slices.Index(model, xid)
		model = slices.Delete(model, i, i+1)
		if r, ok := l.pop(xid); !ok || r.xid != xid {
			t.Fatalf("step %d: got %d, %v; want %d", step, r.xid, ok, xid)
		}
		if n := len(l.pending) - l.head; n != len(model) {
			t.Fatalf("step %d: %d waiting, want %d", step, n, len(model))
		}
	}
	if _, ok := l.pop(-99); ok {
		t.Error("found what was never pushed")
	}
}

// BenchmarkLink measures one request after the other in memory, to a server that answers all alike.
func BenchmarkLink(b *testing.B) {
	f := NewFaults(func(context.Context) (net.Conn, error) {
		ours, theirs := newPipe()
		go func() {
			defer theirs.Close()
			buf := make([]byte, 1024)
			answer := verdict(make([]byte, lengthSize, 64), jute.ReplyHeader{})
			for {
				n, err := theirs.Read(buf)
				if err != nil {
					return
				}
				copy(answer[lengthSize:], buf[lengthSize:min(n, 2*lengthSize)]) // the xid
				theirs.Write(answer)
			}
		}()
		return ours, nil
	})
	defer f.close()
	request := jute.AppendRequestHeader(make([]byte, lengthSize), jute.RequestHeader{Xid: 1, Op: jute.OpGetData})
	request = setLength(jute.AppendRequest(request, "", &jute.Request{Op: jute.OpGetData, Path: "/some/path"}))
	conn, err := f.connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	answer := make([]byte, 20)
	roundTrip := func() {
		conn.Write(request)
		if _, err := io.ReadFull(conn, answer); err != nil {
			b.Fatal(err)
		}
	}
	for _, rules := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			for range rules {
				defer f.Add(Rule{Path: "/some/**/other", Action: CutBefore}).Remove()
			}
			roundTrip()
			f.ResetTrace()
			for range traceSize {
				f.trace.add(TraceEntry{})
			}
			b.ReportAllocs()
			for b.Loop() {
				roundTrip()
			}
		})
	}
}
