package interop_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/interop"
)

// marketPath is the base path of the services, and marketServices are their names.
const marketPath = "/market"

var marketServices = []string{"orders", "stock"}

// market is a meeting of processes that offer the same services and find each other's.
type market struct {
	*meeting
	chaos   *chaos.Test
	traders []*trader
}

// trader is a process of a language that is killed and started again. Each life offers an instance of each service.
type trader struct {
	*market
	language
	name    string
	connect string
	proxy   *curatortest.Proxy
	random  *rand.Rand // for its goroutine

	lives   int
	process *interop.Peer
	peer    *peer
	offers  []instance // of this life; none if it is dead
}

// TestMixedDiscoveryWhileBothAreKilled has processes of Go and Java offer instances of the same services. Some are
// killed and started again, others lose their connection, some for longer than their session. Whenever they are left
// alone, each process finds exactly the instances of the living ones, and no others are on the server.
func TestMixedDiscoveryWhileBothAreKilled(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	rounds := testenv.Size(2, 2, 25)
	m := openMarket(t)
	m.each(m.traders, (*trader).start)
	m.settle("start", m.traders)
	r := m.chaos.Random(0)
	for round := range rounds {
		m.ctx = testenv.Context(t) // that of a round
		m.round(r, round)
	}
	for _, n := range r.Perm(len(m.traders)) {
		z := m.traders[n]
		if r.IntN(2) == 0 {
			z.cut()
		}
		z.close()
		m.settle(z.name+" has closed", m.living())
	}
	if left := m.offered(); len(left) > 0 {
		t.Errorf("left on the server: %v", left)
	}
}

// openMarket returns two traders of Go and two of Java that are not started.
func openMarket(t *testing.T) *market {
	t.Helper()
	m := &market{chaos: chaos.New(t)}
	var connect string
	m.meeting, connect = newMeeting(t)
	for n := range 4 {
		z := &trader{market: m, language: []language{golangPeer, javaPeer}[n%2], random: m.chaos.Random(n + 1)}
		z.name = fmt.Sprint(z.language, " ", n)
		z.proxy = curatortest.NewProxyT(t, testenv.Addr(t))
		z.connect = strings.Replace(connect, testenv.Addr(t), z.proxy.Addr(), 1)
		t.Cleanup(func() { // of a test that has failed
			if z.process != nil {
				_ = z.process.Kill()
			}
		})
		m.traders = append(m.traders, z)
	}
	return m
}

// round kills a trader of one language, and maybe another one, and cuts one of the other language off until its session
// has ended. Those that are left find each other alone. Then all come back, while their connections break.
func (m *market) round(r *rand.Rand, number int) {
	m.t.Helper()
	all := slices.Clone(m.traders)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	// The two of one language are in front, those of Go every other time.
	slices.SortStableFunc(all, func(a, b *trader) int { return cmp.Compare(a.rank(number), b.rank(number)) })
	dead, lonely, rest := all[:1:1], all[2], []*trader{all[1], all[3]}
	r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	if r.IntN(2) == 0 {
		dead, rest = append(dead, rest[0]), rest[1:]
	}
	for _, z := range dead {
		z.kill()
	}
	heal := lonely.separate(r.IntN(3))
	for _, z := range rest {
		z.cut()
	}
	m.settle(fmt.Sprint("round ", number, ": sessions have ended"), rest)

	calm := m.disturb(r)
	heal()
	var back sync.WaitGroup
	back.Go(func() { m.each(dead, (*trader).start) })
	for range testenv.Size(4, 4, 10) {
		m.traders[r.IntN(len(m.traders))].cut()
	}
	back.Wait()
	calm()
	m.settle(fmt.Sprint("round ", number, ": all are back"), m.traders)
}

// rank sorts the traders of a round by their language.
func (z *trader) rank(round int) int {
	if (z.language == golangPeer) == (round%2 == 0) {
		return 0
	}
	return 1
}

// disturb has requests of all traders lost, and replies to those of Go: an instance of Java that finds its node there
// twice gives it up.
func (m *market) disturb(r *rand.Rand) (calm func()) {
	var rules []*curatortest.Injection
	for _, z := range m.traders {
		rule := curatortest.Rule{Action: curatortest.CutBefore, Chance: .03, Seed: r.Uint64(), MayMiss: true}
		if z.language == golangPeer && r.IntN(2) == 0 {
			rule.Action = curatortest.CutAfter
		}
		rules = append(rules, z.proxy.Faults().Add(rule))
	}
	return func() {
		for _, rule := range rules {
			rule.Remove()
		}
	}
}

// each does something with some traders at once.
func (m *market) each(traders []*trader, do func(*trader) error) {
	m.t.Helper()
	var all sync.WaitGroup
	for _, z := range traders {
		all.Go(func() {
			if err := do(z); err != nil {
				m.chaos.Errorf("%s: %v", z.name, err)
			}
		})
	}
	all.Wait()
}

// living returns the traders that have a process.
func (m *market) living() (living []*trader) {
	for _, z := range m.traders {
		if z.process != nil {
			living = append(living, z)
		}
	}
	return living
}

// javaStarts is the time after which a start of Java's caches is given up: now and then one waits for ever for the end
// of its first load when requests are lost. It is longer than the retries of a request.
const javaStarts = 100 * time.Second

// start starts a process that offers an instance of each service under a new id. Under the old id, a cache of Java that
// was cut off meanwhile would keep the old instance.
func (z *trader) start() (err error) {
	z.lives++
	z.chaos.Note("%s: life %d", z.name, z.lives)
	if z.process, err = z.language.start(z.ctx); err != nil {
		return err
	}
	z.peer = &peer{Scope: z.process.Scope(""), language: z.language, t: z.t, ctx: z.ctx}
	// Its retries outlast all faults.
	err = z.peer.Call(z.ctx, "start", interop.Args{
		"connect": z.connect, "sessionTimeoutMs": testenv.SessionTimeout.Milliseconds(), "connectionTimeoutMs": 60_000,
		"retryMax": 29,
	}, nil)
	if err != nil {
		return err
	}
	args := interop.Args{"name": "d", "path": marketPath, "services": marketServices}
	starting, stop := context.WithTimeout(z.ctx, javaStarts)
	defer stop()
	if z.language == golangPeer {
		starting = z.ctx
	}
	if err := z.peer.Call(starting, "discoveryStart", args, nil); err != nil {
		if starting.Err() != nil && z.ctx.Err() == nil {
			z.kill()
			return z.start()
		}
		return err
	}
	var offers []instance
	for n, service := range marketServices {
		offers = append(offers, z.offer(n, service))
		args := interop.Args{"name": "d", "instance": offers[n]}
		err := z.peer.Call(z.ctx, "discoveryRegister", args, nil)
		// Java fails if it creates the node, finds it there because the answer was lost, deletes it, and loses that answer.
		for z.language != golangPeer && err != nil && strings.Contains(err.Error(), "NoNode") {
			z.chaos.Note("%s: registers again: %v", z.name, err)
			err = z.peer.Call(z.ctx, "discoveryRegister", args, nil)
		}
		if err != nil {
			return err
		}
	}
	z.offers = offers
	return nil
}

// offer returns an instance with a payload of its own.
func (z *trader) offer(n int, service string) instance {
	when, text := z.random.Int64N(1<<40), fmt.Sprintf("ä😀\"%x", z.random.Uint64())
	return instance{
		Name: service, ID: fmt.Sprintf("%s-%d-%d", z.name, z.lives, n), Address: "10.0.0.1", Port: 1 + z.random.IntN(1<<16-1),
		RegistrationTimeUTC: z.random.Int64N(1 << 40),
		Payload: instanceMeta{
			Zone: z.name, Weight: z.lives, Inner: &instanceInner{N: n, S: &text, L: []string{service, text}},
			M: map[string]any{"text": text}, D: z.random.Float64(), F: z.random.Float32(), Big: z.random.Int64N(1 << 59),
			Raw: []byte(text), When: &when, C: []string{"RED", "GREEN"}[z.random.IntN(2)], OK: z.random.IntN(2) == 0,
		},
	}
}

// kill ends a process as a crash does.
func (z *trader) kill() {
	z.t.Helper()
	z.chaos.Note("%s: killed", z.name)
	if err := z.process.Kill(); err != nil {
		z.t.Fatal(err)
	}
	z.process, z.offers = nil, nil
}

// close ends a process, whose clients close before.
func (z *trader) close() {
	z.t.Helper()
	z.chaos.Note("%s: closes", z.name)
	if err := z.process.Close(); err != nil {
		z.t.Errorf("%s: %v", z.name, err)
	}
	z.process, z.offers = nil, nil
}

// cut ends the connection of a process, and first waits until it has one.
func (z *trader) cut() {
	z.t.Helper()
	testenv.Eventually(z.t, func() bool { return z.proxy.Faults().CutAll() > 0 }, z.name+" has a connection")
	z.chaos.Note("%s: cut", z.name)
}

// separate keeps a process from the server, in one of three ways.
func (z *trader) separate(way int) (heal func()) {
	var restore func()
	z.chaos.Note("%s: separated in way %d", z.name, way)
	faults := z.proxy.Faults()
	switch way {
	case 0:
		restore = faults.RefuseConnects()
		faults.CutAll()
	case 1:
		restore = faults.AcceptSilently()
		faults.CutAll()
	default:
		restore = faults.BlackHole(curatortest.ToServer | curatortest.ToClient)
	}
	return func() {
		z.chaos.Note("%s: no more separated", z.name)
		restore()
	}
}

// settle waits until the server and each of the traders have exactly the instances of these traders.
func (m *market) settle(what string, traders []*trader) {
	m.t.Helper()
	if m.t.Failed() { // a process has not started
		m.t.FailNow()
	}
	m.chaos.Note("%s: settling", what)
	var diff string
	defer func() {
		if m.t.Failed() {
			m.chaos.Note("%s: (-want +got)\n%s", what, diff)
		}
	}()
	testenv.Eventually(m.t, func() bool {
		diff = m.differences(traders)
		return diff == ""
	}, what)
	m.chaos.Note("%s: settled", what)
}

// differences compares what there is with the offers of the traders.
func (m *market) differences(traders []*trader) string {
	m.t.Helper()
	owners := make(map[string]int64) // by path
	want := make(map[string][]instance)
	for _, service := range marketServices {
		want[service] = []instance{}
	}
	for _, z := range traders {
		session, err := z.peer.session(m.ctx)
		if err != nil {
			return z.fault(err)
		}
		for _, i := range z.offers {
			owners[marketPath+"/"+i.Name+"/"+i.ID] = session
			want[i.Name] = append(want[i.Name], i)
		}
	}
	if diff := gocmp.Diff(owners, m.offered()); diff != "" {
		return "the owners of the nodes:\n" + diff
	}
	for service := range want {
		sortInstances(want[service])
	}
	for _, z := range traders {
		views := make(map[string]serviceView)
		if err := z.peer.Call(m.ctx, "discoveryView", interop.Args{"name": "d"}, &views); err != nil {
			return z.fault(err)
		}
		for _, service := range marketServices {
			got, all := views[service], want[service]
			for _, list := range [][]instance{got.Cache, got.Provider, got.Query} {
				sortInstances(list)
			}
			if diff := gocmp.Diff(serviceView{all, all, all}, got); diff != "" {
				return fmt.Sprintf("%s of %s:\n%s", service, z.name, diff)
			}
		}
	}
	return ""
}

// fault returns the text of an error that may go away. If the process has ended by itself, it does not.
func (z *trader) fault(err error) string {
	z.t.Helper()
	if errors.Is(err, interop.ErrExited) {
		z.t.Fatalf("%s: %v", z.name, err)
	}
	return fmt.Sprintf("%s: %v", z.name, err)
}

func sortInstances(all []instance) {
	slices.SortFunc(all, func(a, b instance) int { return strings.Compare(a.ID, b.ID) })
}

// offered returns the paths of all instances on the server, with the sessions that own them.
func (m *market) offered() map[string]int64 {
	m.t.Helper()
	owners := make(map[string]int64)
	for _, n := range m.nodes("/") {
		if strings.Count(n.path, "/") == 3 {
			owners[n.path] = n.stat.EphemeralOwner
		}
	}
	return owners
}
