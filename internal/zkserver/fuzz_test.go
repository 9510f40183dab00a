package zkserver

import (
	"io"
	"net"
	"testing"

	"github.com/gocurator/curator/internal/jute"
)

// FuzzConnection sends arbitrary bytes as the start of a connection, as a frame, or as the body of any operation. The
// server keeps serving other connections.
func FuzzConnection(f *testing.F) {
	f.Add(byte(0), int32(0), []byte("ruok"))
	f.Add(byte(0), int32(0), []byte{0x7f, 0xff, 0xff, 0xff})
	f.Add(byte(0), int32(0), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(byte(1), int32(0), []byte{0, 0, 0, 1, 0, 0, 0, 14})
	for op := jute.OpCloseSession; op <= jute.OpWhoAmI; op++ {
		for _, body := range [][]byte{
			{},
			{0, 0, 0, 2, '/', 'a', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
			jute.AppendRequest(nil, "", &jute.Request{Op: op, Path: "/a", Ops: []jute.Request{{Op: jute.OpCreate, Path: "/a"}}}),
		} {
			f.Add(byte(2), int32(op), body)
		}
	}
	service := New(testConfig())
	f.Cleanup(service.Close)
	f.Fuzz(func(t *testing.T, how byte, op int32, data []byte) {
		bystander := newClient(t, service.Member(1))
		var hostile net.Conn
		switch how % 3 {
		case 0:
			near, far := net.Pipe()
			served := make(chan struct{})
			go func() {
				defer close(served)
				service.Member(1).Serve(far)
			}()
			defer func() {
				near.Close() //nolint:errcheck // the server may have closed it
				<-served
			}()
			hostile = near
		case 1:
			hostile = newClient(t, service.Member(1))
			data = appendFrame(nil, func(b []byte) []byte { return append(b, data...) })
		default:
			hostile = newClient(t, service.Member(1))
			data = appendFrame(nil, func(b []byte) []byte {
				return append(jute.AppendRequestHeader(b, jute.RequestHeader{Xid: 1, Op: jute.Op(op)}), data...)
			})
		}
		go io.Copy(io.Discard, hostile) //nolint:errcheck // it ends with the connection
		hostile.Write(data)             //nolint:errcheck // the server may have closed it
		bystander.ping(t)
	})
}
