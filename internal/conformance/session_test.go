package conformance_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

const ephemeral = 1

var sessionStories = []story{
	{name: "a session ends with a tick after its timeout", play: sessionEnds},
	{name: "a ping keeps a session", play: pingKeeps},
	{name: "a session that comes back has the timeout it asks for", play: timeoutChanges},
	{name: "a wrong password ends the connection of the session but not the session", play: wrongPassword},
	{name: "a connection without a session is not ended by a timeout", play: silentConnection},
	{name: "a session id has the server's number first and counts", play: sessionIDs},
	{name: "a password is made of the session id", play: passwords},
}

func sessionEnds(t stage) {
	addr := t.addr
	for _, timeout := range []time.Duration{time.Second, 1500 * time.Millisecond, 2 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			path := "/ends-" + timeout.String()
			witness := connect(t, addr, sessionTimeout)
			c, used := shortSession(t, addr, witness, path, timeout)
			if c.timeout != timeout {
				t.Fatalf("the timeout is %v", c.timeout)
			}
			before := time.Now()
			var after time.Time
			for {
				_, err := c.request(&jute.Request{Op: jute.OpPing})
				after = time.Now()
				if err == nil {
					break
				}
				lasted(t, used, timeout)
				witness.awaitDeleted(t, path)
				c, used = shortSession(t, addr, witness, path, timeout)
				before = time.Now()
			}
			gone := witness.awaitDeleted(t, path)
			if early := timeout - gone.Sub(before); early > time.Millisecond { // Java's clock has milliseconds
				t.Errorf("the session ended too soon by %v", early)
			}
			if late := gone.Sub(after) - timeout - storyTick; late > slack {
				t.Errorf("the session ended too late by %v", late)
			}
			c.awaitEnd(t)
			if again := take(t, addr, c, timeout); again.session != 0 || again.timeout != 0 {
				t.Errorf("session %#x is back with timeout %v", again.session, again.timeout)
			}
		})
	}
}

// shortSession opens a session, and creates an ephemeral node that the witness watches. On a busy machine the session
// may be over before that: then there is another one. It returns when the session was used last.
func shortSession(tb testing.TB, addr string, witness *conn, path string, timeout time.Duration) (*conn, time.Time) {
	tb.Helper()
	create := jute.Request{Op: jute.OpCreate2, Path: path, Flags: ephemeral, ACL: zk.WorldACL(zk.PermAll)}
	for {
		used := time.Now()
		c := connect(tb, addr, timeout)
		connected := time.Now()
		if _, err := c.request(&create); err == nil {
			used = connected
			if witness.tryWatch(tb, path) {
				return c, used
			}
		}
		lasted(tb, used, timeout)
	}
}

// lasted ends the test if what is gone had less than its time.
func lasted(tb testing.TB, since time.Time, least time.Duration) {
	tb.Helper()
	if d := time.Since(since); d < least-time.Millisecond { // Java's clock has milliseconds
		tb.Fatalf("gone after %v at most, want %v", d, least)
	}
}

// tryWatch watches a node, and reports whether it is there.
func (c *conn) tryWatch(tb testing.TB, path string) bool {
	tb.Helper()
	a, err := c.request(&jute.Request{Op: jute.OpGetData, Path: path, Watch: true})
	if err != nil {
		tb.Fatal(err)
	}
	return a.Code == jute.CodeOK
}

func pingKeeps(t stage) {
	const timeout, pause = 3 * time.Second, 300 * time.Millisecond
	witness := connect(t, t.addr, sessionTimeout)
	c, last := shortSession(t, t.addr, witness, "/kept", timeout)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for pings := 0; pings < int((timeout+timeout/2)/pause); {
		<-tick.C
		before := time.Now()
		if a, err := c.request(&jute.Request{Op: jute.OpPing}); err == nil && a.Code == jute.CodeOK {
			pings, last = pings+1, before
			continue
		}
		lasted(t, last, timeout)
		witness.awaitDeleted(t, "/kept")
		pings = 0
		c, last = shortSession(t, t.addr, witness, "/kept", timeout)
	}
	if gone := witness.awaitDeleted(t, "/kept"); gone.Sub(last) < timeout-pause {
		t.Errorf("the session ended %v after the last ping", gone.Sub(last))
	}
}

func timeoutChanges(t stage) {
	witness, long := connect(t, t.addr, sessionTimeout), connect(t, t.addr, time.Hour)
	long.create(t, "/changes", ephemeral)
	witness.watch(t, "/changes")
	const timeout = 300 * time.Millisecond
	short := take(t, t.addr, long, timeout)
	if short.session != long.session || short.timeout != timeout {
		t.Fatalf("session %#x is back as %#x with timeout %v", long.session, short.session, short.timeout)
	}
	long.awaitEnd(t)
	witness.awaitDeleted(t, "/changes")
	short.awaitEnd(t)
}

func wrongPassword(t stage) {
	victim := connect(t, t.addr, sessionTimeout)
	victim.create(t, "/victim", ephemeral)
	guess := take(t, t.addr, &conn{session: victim.session}, sessionTimeout)
	if guess.session != 0 {
		t.Fatalf("session %#x without its password", guess.session)
	}
	guess.awaitEnd(t)
	victim.awaitEnd(t)
	again := take(t, t.addr, victim, sessionTimeout)
	if again.session != victim.session {
		t.Fatalf("session %#x is back as %#x", victim.session, again.session)
	}
	again.must(t, jute.Request{Op: jute.OpExists, Path: "/victim"})
}

// silentConnection: the session of another ends meanwhile, so that time has passed on the server.
func silentConnection(t stage) {
	silent, err := dial(t.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // not what is tested
	witness := connect(t, t.addr, sessionTimeout)
	shortSession(t, t.addr, witness, "/silence", time.Second)
	witness.awaitDeleted(t, "/silence")
	answer, err := silent.handshake(jute.ConnectRequest{TimeoutMs: 1000})
	if err != nil || answer.SessionID == 0 {
		t.Errorf("answer %+v, error %v", answer, err)
	}
}

// sessionIDs: others may open sessions at the same time.
func sessionIDs(t stage) {
	const server, counter = 1 << 56, 1 << 16
	first := connect(t, t.addr, sessionTimeout).session
	second := connect(t, t.addr, sessionTimeout).session
	if first/server != 1 || second <= first || second-first > counter {
		t.Errorf("session ids %#x and %#x", first, second)
	}
}

func passwords(t stage) {
	measured, err := hex.DecodeString("1c054ddf7986c7105ac351f5ea51eda1")
	if err != nil || !bytes.Equal(passwordOf(0x10000f0f3920000), measured) {
		t.Fatalf("the test makes %x", passwordOf(0x10000f0f3920000))
	}
	for range 2 {
		if c := connect(t, t.addr, sessionTimeout); !bytes.Equal(c.password, passwordOf(c.session)) {
			t.Errorf("session %#x has password %x, not %x", c.session, c.password, passwordOf(c.session))
		}
	}
}

// passwordOf returns the bytes of java.util.Random that a server has for a password.
func passwordOf(session int64) (password []byte) {
	const (
		secret     = 0xb3415c00
		multiplier = 0x5deece66d
		bits       = 1<<48 - 1
	)
	state := (uint64(session) ^ secret ^ multiplier) & bits
	for len(password) < jute.PasswordSize {
		state = (state*multiplier + 0xb) & bits
		password = binary.LittleEndian.AppendUint32(password, uint32(state>>16))
	}
	return password
}
