package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

const (
	testTick  = 500 * time.Millisecond
	testLimit = 5 * testTick // for which a member goes on without its leader
)

// reader is a client whose frames are read as they come.
type reader struct {
	*client
	frames chan []byte // closed at the end of the connection
}

// readAll reads the frames of a client from now on.
func readAll(c *client) *reader {
	r := &reader{c, make(chan []byte, 100)}
	go func() {
		defer close(r.frames)
		for {
			b, err := c.frame()
			if err != nil {
				return
			}
			r.frames <- b
		}
	}()
	return r
}

// send sends a request.
func (r *reader) send(t *testing.T, q jute.Request) (xid int32) {
	t.Helper()
	r.xid++
	r.write(t, jute.AppendRequest(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: r.xid, Op: q.Op}), "", &q))
	return r.xid
}

// sendPing sends a ping.
func (r *reader) sendPing(t *testing.T) (xid int32) {
	t.Helper()
	r.write(t, jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: jute.XidPing, Op: jute.OpPing}))
	return jute.XidPing
}

// answers returns the xids and codes of what has come so far, and whether the connection is open.
func (r *reader) answers(t *testing.T) (headers []jute.ReplyHeader, open bool) {
	t.Helper()
	synctest.Wait()
	for {
		select {
		case b, ok := <-r.frames:
			if !ok {
				return headers, false
			}
			h, _, err := jute.DecodeReplyHeader(b)
			if err != nil {
				t.Fatal(err)
			}
			headers = append(headers, h)
		default:
			return headers, true
		}
	}
}

// want fails unless exactly the requests of these xids have been answered, and well.
func (r *reader) want(t *testing.T, xids ...int32) {
	t.Helper()
	got, open := r.answers(t)
	if !open {
		t.Fatal("the connection has ended")
	}
	for i, h := range got {
		if i >= len(xids) || h.Xid != xids[i] || h.Code != jute.CodeOK {
			t.Fatalf("answers %+v, want %v", got, xids)
		}
	}
	if len(got) != len(xids) {
		t.Fatalf("answers %+v, want %v", got, xids)
	}
}

// wantEnd fails unless the connection has ended without another answer.
func (r *reader) wantEnd(t *testing.T) {
	t.Helper()
	if got, open := r.answers(t); open || len(got) > 0 {
		t.Fatalf("open %t, answers %+v", open, got)
	}
}

// inCluster runs a test in virtual time on three members that notice late that they are cut off. Member 1 leads.
func inCluster(t *testing.T, test func(t *testing.T, s *Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := testConfig()
		c.Members, c.Tick, c.SyncLimit = 3, testTick, int(testLimit/testTick)
		s := New(c)
		defer s.Close()
		test(t, s)
	})
}

// startSession connects a client that gets a new session.
func startSession(t *testing.T, m *Member, timeout time.Duration) *reader {
	t.Helper()
	c := dial(t, m, jute.ConnectRequest{TimeoutMs: int32(timeout.Milliseconds())})
	if c == nil || c.session.SessionID == 0 {
		t.Fatal("no session")
	}
	return readAll(c)
}

var (
	readRoot   = jute.Request{Op: jute.OpExists, Path: "/"}
	syncRoot   = jute.Request{Op: jute.OpSync, Path: "/"}
	emptyMulti = jute.Request{Op: jute.OpMulti}
)

func createOf(path string) jute.Request {
	return jute.Request{Op: jute.OpCreate, Path: path, ACL: zk.WorldACL(zk.PermAll)}
}

// restOfHalfTick is how long until the next ping of the leader.
func restOfHalfTick(s *Service) time.Duration { return s.halfTickAfter(s.now()).Sub(s.now()) }

func TestFollowerServesReadersUntilItNoticesThatItIsCutOff(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		reads, writes, syncs := startSession(t, s.Member(3), time.Minute), startSession(t, s.Member(3), time.Minute),
			startSession(t, s.Member(3), time.Minute)
		other := startSession(t, s.Member(2), time.Minute)
		time.Sleep(restOfHalfTick(s) + 10*time.Millisecond) // the last message of the leader was 10 ms ago
		s.Part([]int{0, 0, 1})

		other.want(t, other.send(t, createOf("/new")))
		reads.want(t, reads.sendPing(t), reads.send(t, readRoot))
		if exists(s.Member(3), "/new") {
			t.Error("it has the writes of the others")
		}
		writes.send(t, createOf("/x"))
		syncs.send(t, syncRoot)
		for _, r := range []*reader{writes, syncs} {
			r.sendPing(t) // waits behind it
			r.send(t, readRoot)
			r.want(t)
		}
		late := dialLater(t, s.Member(3))
		time.Sleep(testLimit - 11*time.Millisecond)
		reads.want(t, reads.sendPing(t), reads.send(t, readRoot))
		writes.want(t)
		time.Sleep(time.Millisecond)
		for _, r := range []*reader{reads, writes, syncs, late} {
			r.wantEnd(t)
		}
		other.want(t, other.sendPing(t))
		if exists(s.Member(1), "/x") {
			t.Error("the write was done")
		}
	})
}

// dialLater connects to a member that does not answer the handshake of a new session now.
func dialLater(t *testing.T, m *Member) *reader {
	t.Helper()
	c := connect(t, m)
	c.write(t,
		jute.AppendConnectRequest(nil, &jute.ConnectRequest{TimeoutMs: 1000, Password: make([]byte, jute.PasswordSize)}))
	r := readAll(c)
	r.want(t)
	return r
}

func TestPartitionThatIsShortLosesNothing(t *testing.T) {
	for name, sides := range map[string][]int{"a follower": {0, 0, 1}, "the leader": {0, 1, 1}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, s *Service) {
				leader, follower := startSession(t, s.Member(1), time.Minute), startSession(t, s.Member(3), time.Minute)
				heal := s.Part(sides)
				write := follower.send(t, createOf("/x"))
				read := follower.send(t, readRoot)
				follower.want(t)
				late := dialLater(t, s.Member(3))
				time.Sleep(testLimit / 2)
				heal()
				follower.want(t, write, read)
				if got, open := late.answers(t); len(got) != 1 || !open {
					t.Errorf("answers %+v, open %t", got, open)
				}
				leader.want(t, leader.sendPing(t))
				if !s.Member(1).Leads() || !exists(s.Member(2), "/x") {
					t.Error("the write is lost, or the leader")
				}
				time.Sleep(2 * testLimit)
				follower.want(t, follower.sendPing(t))
			})
		})
	}
}

func TestLeaderServesReadersUntilItNoticesThatItIsCutOff(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		reads, writes, behind := startSession(t, s.Member(1), time.Minute), startSession(t, s.Member(1), time.Minute),
			startSession(t, s.Member(2), time.Minute)
		time.Sleep(testTick - s.now().Sub(s.began)%testTick + 300*time.Millisecond) // 50 ms after the followers' last message
		s.Part([]int{0, 1, 1})
		reads.want(t, reads.sendPing(t), reads.send(t, readRoot), reads.send(t, syncRoot)) // nothing is outstanding
		renewed := reads.again(t, s.Member(1), time.Minute)
		if renewed == nil || renewed.session.SessionID != reads.session.SessionID {
			t.Fatal("a session is not renewed")
		}
		reads = readAll(renewed)
		writes.send(t, emptyMulti)
		writes.want(t)
		reads.send(t, syncRoot) // now something is
		reads.want(t)
		reader := readAll(writes.again(t, s.Member(1), time.Minute))
		behind.want(t, behind.sendPing(t))

		time.Sleep(testLimit - 51*time.Millisecond)
		if s.Member(2).Serving() {
			t.Error("the followers noticed it early")
		}
		behind.want(t, behind.sendPing(t))
		time.Sleep(time.Millisecond)
		behind.wantEnd(t)
		if !s.Member(2).Leads() || !s.Member(3).Serving() {
			t.Error("the others have not elected a leader")
		}
		// A leader looks at its followers once a tick.
		reader.want(t, reader.sendPing(t), reader.send(t, readRoot))
		time.Sleep(249 * time.Millisecond)
		reader.want(t, reader.sendPing(t))
		time.Sleep(time.Millisecond)
		reader.wantEnd(t)
		reads.wantEnd(t)
	})
}

func TestSessionsHaveTheirWholeTimeoutFromANewLeader(t *testing.T) {
	// The session is new at 0 and the leader elected at 2.5 s, so that it ends at 5 s, the tick after 4.5 s.
	for name, sleep := range map[string]func(*Service, time.Duration){
		"time passes":   func(_ *Service, d time.Duration) { time.Sleep(d) },
		"it is skipped": (*Service).Advance,
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, s *Service) {
				c := startSession(t, s.Member(1), 2*time.Second)
				heal := s.Part([]int{0, 1, 1})
				sleep(s, testLimit+2*time.Second+testTick-time.Millisecond) // over, if the first leader could end it
				synctest.Wait()
				if len(s.Sessions()) != 1 || !s.Member(2).Leads() {
					t.Fatalf("sessions %v, member 2 leads: %t", s.Sessions(), s.Member(2).Leads())
				}
				sleep(s, time.Millisecond)
				synctest.Wait()
				if len(s.Sessions()) != 0 {
					t.Error("the session has not ended")
				}
				c.wantEnd(t)
				heal()
				if !s.Member(1).Serving() || s.Member(1).Leads() {
					t.Error("the first leader does not follow")
				}
			})
		})
	}
}

// A leader ends a session that is over for it as soon as it has its quorum again.
func TestSessionThatIsOverForACutOffLeader(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		c, other := startSession(t, s.Member(1), time.Second), startSession(t, s.Member(1), time.Minute)
		heal := s.Part([]int{0, 1, 1})
		time.Sleep(2 * time.Second)
		c.sendPing(t)
		c.want(t) // no member
		other.send(t, syncRoot)
		other.want(t) // the end of the session is outstanding
		if again := c.again(t, s.Member(1), time.Second); again != nil && again.session.SessionID != 0 {
			t.Error("it is renewed")
		}
		if len(s.Sessions()) != 2 {
			t.Error("it was ended without a quorum")
		}
		heal()
		synctest.Wait()
		time.Sleep(testTick)
		synctest.Wait()
		if got := s.Sessions(); len(got) != 1 || got[0] != other.session.SessionID {
			t.Errorf("sessions %x", got)
		}
	})
}

func TestFollowerKeepsSessionsThatTheLeaderHasEnded(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		c := startSession(t, s.Member(3), time.Second)
		heal := s.Part([]int{0, 0, 1})
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			c.want(t, c.sendPing(t))
		}
		if len(s.Sessions()) != 0 {
			t.Fatal("the leader has not ended the session")
		}
		c.send(t, createOf("/x"))
		c.want(t)
		heal()
		c.wantEnd(t)
		if exists(s.Member(1), "/x") {
			t.Error("it has written")
		}
	})
}

func TestMemberThatStopsIsMissedAtOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		c := startSession(t, s.Member(2), time.Minute)
		s.Member(1).Stop()
		c.wantEnd(t)
		if !s.Member(2).Leads() {
			t.Error("no new leader")
		}
		c = startSession(t, s.Member(2), time.Minute)
		s.Member(3).Stop()
		c.wantEnd(t)
	})
}

// A follower that is cut off does not notice that its leader has stopped.
func TestLeaderStopsDuringAPartition(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		c := startSession(t, s.Member(3), time.Minute)
		heal := s.Part([]int{0, 0, 1})
		s.Member(1).Stop()
		c.want(t, c.sendPing(t))
		heal() // it finds the port closed
		c.wantEnd(t)
		if !s.Member(3).Serving() {
			t.Error("no quorum")
		}
	})
}
