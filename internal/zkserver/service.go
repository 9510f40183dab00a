package zkserver

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// Config has the settings of a service. Every field must be set, unless its comment says otherwise.
type Config struct {
	Members           int
	Ensemble          bool      // a single member is an ensemble of one, not a standalone server
	Addresses         []Address // addresses of the members; may be nil
	Version           Version
	Tick              time.Duration // sessions end at multiples of it
	SyncLimit         int           // number of ticks until a member notices that it is cut off; 0 means at once
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration
	SweepInterval     time.Duration // time between two sweeps, which remove expired containers and TTL nodes
	MaxNeverUsed      time.Duration // age at which a sweep removes a container that never had a child; 0 means never
	MaxRequest        int           // bytes of the largest request; a larger one ends its connection
	SuperDigest       string        // digest id of the superuser; empty means none
	ReadOnly          bool          // members without a quorum serve read-only clients
	NoTTL             bool          // nodes with a time to live are refused
	Reconfig          bool          // clients may change the members of an ensemble
	NoACL             bool          // every client may do everything
	EnforceQuota      bool          // the hard limits of quotas hold

	// Users may log in by SASL, with their passwords. A service without SASL has a nil map.
	Users map[string]string
	// Secure is for a service whose clients connect by TLS: it has the scheme x509.
	Secure bool
	// RequiredAuth has the schemes of which a connection needs an identity before it may send requests; none by default.
	RequiredAuth []string
}

// Service is a ZooKeeper service: the history of all its members. Its methods are safe for concurrent use.
type Service struct {
	config Config
	began  time.Time

	mu          sync.Mutex
	members     []*Member
	leader      *Member // nil without a quorum
	ensemble    *ensemble
	cutLeader   *Member // a leader that has lost its quorum and may still regain it; nil if there is a leader
	epoch       int64
	zxid        int64
	log         []logEntry // the transactions that some member has not applied yet
	sessions    map[int64]*session
	kept        map[int64]int // number of unreleased calls of Keep, by session
	nextSession int64
	advanced    time.Duration // sum of the times of Advance
	paused      int           // number of calls of Pause that are not resumed
	nextSweep   time.Time
	serving     map[*conn]struct{} // connections with running goroutines
	connections int64              // number of connections so far
	schemes     schemes
	parted      int // number of calls of Part so far
	closed      bool

	seen    chan struct{} // closed at the next change; nil if nothing waits in Changes
	changed chan struct{} // wakes runClock; has a buffer of one
	done    chan struct{}
	wg      sync.WaitGroup // the clock and all connections
}

// logEntry is a transaction with the time of its commit.
type logEntry struct {
	txn txn
	at  time.Time
}

// New returns a service. All its members serve, and have no connections.
func New(config Config) *Service {
	s := &Service{
		config:   config,
		began:    time.Now(),
		sessions: map[int64]*session{},
		kept:     map[int64]int{},
		serving:  map[*conn]struct{}{},
		changed:  make(chan struct{}, 1),
		done:     make(chan struct{}),
		schemes:  schemes{sasl: config.Users != nil, x509: config.Secure},
	}
	s.ensemble = config.firstEnsemble()
	for i := range config.Members {
		s.members = append(s.members, newMember(s, i+1))
	}
	s.nextSession = s.firstSession()
	s.elect()
	s.wg.Go(s.runClock)
	return s
}

// Member returns the member with this number; the first is 1.
func (s *Service) Member(number int) *Member { return s.members[number-1] }

// Close ends all connections and waits for them.
func (s *Service) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	for c := range s.serving {
		c.hangUp()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// standalone reports whether the service is a single server without an ensemble.
func (s *Service) standalone() bool { return s.config.standalone() }

func (c *Config) standalone() bool { return c.Members == 1 && !c.Ensemble }

// commit commits a transaction. The members that do not lag apply it at once. It returns the results.
func (s *Service) commit(x *txn) []jute.Result {
	defer s.announce()
	x.time = s.now().UnixMilli()
	s.zxid++
	x.zxid = s.zxid
	results := s.leader.apply(x)
	if s.standalone() {
		return results
	}
	s.log = append(s.log, logEntry{*x, s.now()})
	for _, m := range s.members {
		if m.serving() && m.lag == 0 {
			m.catchUp()
		}
	}
	s.trim()
	s.wakeClock()
	return results
}

// missedBy returns the index of the first log entry that a member has not applied.
func (s *Service) missedBy(m *Member) int {
	i, _ := slices.BinarySearchFunc(s.log, m.tree.applied+1, func(e logEntry, zxid int64) int {
		return cmp.Compare(e.txn.zxid, zxid)
	})
	return i
}

// trim drops the log entries that every member has applied.
func (s *Service) trim() {
	i := 0
	for i < len(s.log) && s.appliedByAll(s.log[i].txn.zxid) {
		i++
	}
	s.log = s.log[i:]
}

func (s *Service) appliedByAll(zxid int64) bool {
	for _, m := range s.members {
		if m.tree.applied < zxid {
			return false
		}
	}
	return true
}

var (
	errAhead  = errors.New("zkserver: a sequence only grows")
	errNoNode = errors.New("zkserver: no such node")

	// ErrNoSession is returned if there is no such session.
	ErrNoSession = errors.New("zkserver: no such session")
	// ErrNoQuorum is returned if no member has a quorum.
	ErrNoQuorum = errors.New("zkserver: there is no quorum")
)

// SetSequence sets the number of the next sequential child of a node to n.
func (s *Service) SetSequence(path string, n int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader == nil {
		return ErrNoQuorum
	}
	switch node := s.leader.tree.get(path); {
	case node == nil:
		return errNoNode
	case node.creates > n:
		return errAhead
	}
	s.commit(&txn{changes: []change{{op: opSetSequence, path: path, version: n}}})
	return nil
}

// opSetSequence is a change that no client can request.
const opSetSequence jute.Op = -1 << 16
