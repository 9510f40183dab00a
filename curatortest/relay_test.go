package curatortest

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// relayTo starts a relay to a listener.
func relayTo(t *testing.T, callBack string) (*relay, net.Listener) {
	t.Helper()
	target, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() }) //nolint:errcheck // it has accepted what the test is about
	r, err := newRelay(target.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r.callBack = callBack
	r.start()
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r, target
}

// through connects through a relay and returns both ends.
func through(t *testing.T, r *relay, target net.Listener) (near, far net.Conn) {
	t.Helper()
	near, err := net.Dial("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() }) //nolint:errcheck // the relay may have closed it
	far, err = target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() }) //nolint:errcheck // likewise
	return near, far
}

func wantBytes(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("%q, error %v, want %q", got, err, want)
	}
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func TestRelayKeepsWhatIsSentDuringAPartition(t *testing.T) {
	r, target := relayTo(t, "")
	near, far := through(t, r, target)
	write(t, near, "before")
	wantBytes(t, far, "before")
	r.part(true)
	r.part(true)
	write(t, near, "there")
	write(t, far, "and back")
	if err := far.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for _, conn := range []net.Conn{near, far} {
		if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("%d bytes, error %v", n, err)
		}
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	late, err := net.Dial("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if _, err := late.Read(make([]byte, 1)); err == nil {
		t.Error("a connection is made during a partition")
	}
	r.part(false)
	wantBytes(t, far, "there")
	wantBytes(t, near, "and back")
	if _, err := near.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("error %v, want the end", err)
	}
	write(t, near, "half")
	wantBytes(t, far, "half")
}

func TestRelayChangesTheAddressToCallBack(t *testing.T) {
	r, target := relayTo(t, "127.0.0.1:4711")
	near, far := through(t, r, target)
	greeting := func(address string) string {
		b := binary.BigEndian.AppendUint64(nil, 1<<64-65536)
		b = binary.BigEndian.AppendUint64(b, 3)
		b = binary.BigEndian.AppendUint32(b, uint32(len(address)))
		return string(append(b, address...))
	}
	write(t, near, greeting("127.0.0.1:3888|10.0.0.1:3888")+"vote")
	wantBytes(t, far, greeting("127.0.0.1:4711")+"vote")
}

func TestRelayEndsWhatIsNoGreeting(t *testing.T) {
	r, target := relayTo(t, "127.0.0.1:4711")
	near, far := through(t, r, target)
	write(t, near, string(bytes.Repeat([]byte{0xff}, greetingHead)))
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("error %v, want the end", err)
	}
}

// A leader listens a moment after the others know that it leads.
func TestRelayWaitsForItsTarget(t *testing.T) {
	r, target := relayTo(t, "")
	addr := target.Addr().String()
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	near, err := net.Dial("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	write(t, near, "hello")
	target, err = net.Listen("tcp", addr)
	if err != nil { // another process has the port: with a new one
		TestRelayWaitsForItsTarget(t)
		return
	}
	defer target.Close()
	far, err := target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	wantBytes(t, far, "hello")
}
