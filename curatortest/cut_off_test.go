package curatortest_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
)

// plain is a session of single frames, without a library that has opinions about silence.
type plain struct {
	net.Conn
	r   *bufio.Reader
	id  int64
	xid int32
}

func newPlain(t *testing.T, place testenv.Place, timeout time.Duration) *plain {
	t.Helper()
	conn, err := place.DialContext(t.Context(), "tcp", place.Addr())
	must(t, err)
	p := &plain{Conn: conn, r: bufio.NewReader(conn)}
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the server may have closed it
	p.send(t, jute.AppendConnectRequest(nil, &jute.ConnectRequest{
		TimeoutMs: int32(timeout.Milliseconds()), Password: make([]byte, jute.PasswordSize),
	}))
	b, err := p.frame(limit)
	must(t, err)
	answer, err := jute.DecodeConnectResponse(b)
	must(t, err)
	if p.id = answer.SessionID; p.id == 0 || answer.TimeoutMs != int32(timeout.Milliseconds()) {
		t.Fatalf("session %+v", answer)
	}
	return p
}

func (p *plain) send(t *testing.T, body []byte) {
	t.Helper()
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if _, err := p.Write(frame); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Log(err) // the read says that the connection has ended
	}
}

func (p *plain) frame(wait time.Duration) ([]byte, error) {
	if err := p.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(p.r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(p.r, b)
	return b, err
}

func (p *plain) sendPing(t *testing.T) {
	t.Helper()
	p.send(t, jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: jute.XidPing, Op: jute.OpPing}))
}

func (p *plain) sendRequest(t *testing.T, r *jute.Request) {
	t.Helper()
	p.xid++
	p.send(t, jute.AppendRequest(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: p.xid, Op: r.Op}), "", r))
}

// answer is the next answer, which has to come within wait.
func (p *plain) answer(wait time.Duration) (jute.ReplyHeader, error) {
	b, err := p.frame(wait)
	if err != nil {
		return jute.ReplyHeader{}, err
	}
	h, _, err := jute.DecodeReplyHeader(b)
	return h, err
}

func existsRequest(path string) *jute.Request { return &jute.Request{Op: jute.OpExists, Path: path} }

func createEphemeral(path string) *jute.Request {
	return &jute.Request{Op: jute.OpCreate, Path: path, ACL: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral}
}

// patience is how much later than it has to something may happen on real servers, on a machine that has other things to
// do.
const patience = 15 * time.Second

// A follower that is cut off from its leader does not report its clients, and the leader ends their sessions. Nothing
// that the follower can answer by itself shows it to them; what it must ask the leader for is never answered.
func TestFollowerThatIsCutOffServesSessionsThatHaveEnded(t *testing.T) {
	t.Parallel()
	testenv.OnEnsemble(t, func(t *testing.T, e *testenv.Ensemble) {
		witness := newPlain(t, e.Leader, 20*time.Second)
		unanswered := map[string]*jute.Request{
			"a transaction without operations": {Op: jute.OpMulti},
			"a transaction with a check": {
				Op:  jute.OpMulti,
				Ops: []jute.Request{{Op: jute.OpCheck, Path: "/", Version: -1}},
			},
			"a sync":  {Op: jute.OpSync, Path: "/"},
			"a write": createEphemeral("/late"),
		}
		asks := map[string]*plain{}
		for what := range unanswered {
			asks[what] = newPlain(t, e.Followers[0], 20*time.Second)
		}

		mine := newPlain(t, e.Followers[0], time.Second) // the last one: it must not be over before the follower is cut off
		mine.sendRequest(t, createEphemeral("/mine"))
		h, err := mine.answer(patience)
		must(t, err)
		if h.Code != jute.CodeOK {
			t.Fatal(h.Code)
		}

		began := time.Now()
		heal := e.CutOff(e.Followers[0])
		defer heal()
		for what, request := range unanswered {
			asks[what].sendRequest(t, request)
			asks[what].sendPing(t) // waits behind it
		}
		var over, served time.Duration // until the leader had ended the session, and until the last answer
		for {
			mine.sendPing(t)
			if _, err := mine.answer(patience); err != nil {
				break
			}
			mine.sendRequest(t, existsRequest("/mine"))
			h, err := mine.answer(patience)
			if err != nil {
				break
			}
			served = time.Since(began)
			if h.Code != jute.CodeOK {
				t.Fatalf("the follower has seen the end: %v", h.Code)
			}
			if over == 0 {
				witness.sendRequest(t, existsRequest("/mine"))
				h, err := witness.answer(patience)
				must(t, err)
				if h.Code == jute.CodeNoNode {
					over = time.Since(began)
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		ended := time.Since(began) // not when it was asked last: that may be long before, on a busy machine
		t.Logf("the leader has ended the session after %v, the follower has answered for %v", over, ended)
		if over == 0 || served <= over {
			t.Error("the follower was silent before the session had ended")
		}
		// It has heard of the leader half a tick ago at most.
		if least := testenv.EnsembleLinger - testenv.EnsembleTick; ended < least {
			t.Errorf("the follower has answered for %v, want at least %v", ended, least)
		}
		for what, p := range asks {
			if h, err := p.answer(patience); err == nil || isTimeout(err) {
				t.Errorf("%s: answer %+v, error %v", what, h, err)
			}
		}
	})
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A partition that is over before anybody has noticed only delays.
func TestShortPartition(t *testing.T) {
	t.Parallel()
	for _, cut := range []string{"follower", "leader"} {
		t.Run(cut, func(t *testing.T) {
			testenv.OnEnsemble(t, func(t *testing.T, e *testenv.Ensemble) {
				p := newPlain(t, e.Followers[0], 20*time.Second)
				server := e.Followers[0]
				if cut == "leader" {
					server = e.Leader
				}
				heal := e.CutOff(server)
				p.sendRequest(t, createEphemeral("/late"))
				p.sendRequest(t, existsRequest("/late"))
				if h, err := p.answer(testenv.EnsembleLinger / 3); !isTimeout(err) {
					t.Errorf("answer %+v, error %v", h, err)
				}
				heal()
				for xid := range int32(2) {
					h, err := p.answer(patience)
					must(t, err)
					if h.Xid != xid+1 || h.Code != jute.CodeOK {
						t.Errorf("answer %+v", h)
					}
				}
			})
		})
	}
}

// A leader that is cut off answers reads and pings for a while; the others elect a new one.
func TestLeaderThatIsCutOff(t *testing.T) {
	t.Parallel()
	testenv.OnEnsemble(t, func(t *testing.T, e *testenv.Ensemble) {
		reads, writes, syncs := newPlain(t, e.Leader, 20*time.Second), newPlain(t, e.Leader, 20*time.Second),
			newPlain(t, e.Leader, 20*time.Second)
		began := time.Now()
		heal := e.CutOff(e.Leader)
		syncs.sendRequest(t, &jute.Request{Op: jute.OpSync, Path: "/"}) // proves nothing
		if h, err := syncs.answer(patience); err != nil || h.Code != jute.CodeOK {
			t.Errorf("sync: %+v, error %v", h, err)
		}
		writes.sendRequest(t, &jute.Request{Op: jute.OpMulti})
		for {
			reads.sendRequest(t, existsRequest("/"))
			if _, err := reads.answer(patience); err != nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		ended := time.Since(began) // not when it was asked last: that may be long before, on a busy machine
		t.Logf("it has answered for %v", ended)
		if least := testenv.EnsembleLinger - testenv.EnsembleTick; ended < least {
			t.Errorf("it has answered for %v, want at least %v", ended, least)
		}
		if _, err := writes.answer(patience); err == nil || isTimeout(err) {
			t.Errorf("a write: %v", err)
		}
		testenv.Eventually(t,
			func() bool { return role(t, e.Followers[0]) == "leader" || role(t, e.Followers[1]) == "leader" },
			"the others have a leader")
		heal()
		testenv.Eventually(t, func() bool { return role(t, e.Leader) == "follower" }, "the first leader follows")
	})
}

// role is what a server says it is, "" if it does not serve.
func role(t *testing.T, place testenv.Place) string {
	t.Helper()
	conn, err := place.DialContext(t.Context(), "tcp", place.Addr())
	if err != nil {
		return ""
	}
	defer conn.Close() //nolint:errcheck // nothing more is said
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return ""
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return ""
	}
	return modeOf(string(answer))
}

func TestPartitionNeedsTheOption(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	cluster, err := curatortest.NewRealCluster(1)
	must(t, err)
	defer closeServer(t, cluster)
	if _, err := cluster.Partition(); !errors.Is(err, curatortest.ErrNoPartitions) {
		t.Errorf("error %v", err)
	}
	if _, err := curatortest.NewRealCluster(3, curatortest.WithPartitions(),
		curatortest.WithConfig("reconfigEnabled", "true")); err == nil {
		t.Error("partitions and reconfigurations")
	}
}

// modeOf finds the role in the answer to srvr.
func modeOf(srvr string) string {
	_, mode, _ := strings.Cut(srvr, "Mode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode
}
