package discovery_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// provider returns a started provider of the service "orders".
func (s *scene) provider(opts ...discovery.ProviderOption[string]) *discovery.ServiceProvider[string] {
	s.Helper()
	p := s.discover(s.reader).Provider("orders", opts...)
	s.must(p.Start(s.ctx))
	return p
}

// register registers instances of the service "orders".
func (s *scene) register(d *services, all ...string) {
	s.Helper()
	for _, id := range all {
		s.must(d.Register(s.ctx, orders(id, id)))
	}
}

// awaitAll waits until the provider chooses among so many instances.
func (s *scene) awaitAll(p *discovery.ServiceProvider[string], count int) {
	s.Helper()
	testenv.Eventually(s, func() bool { return len(p.AllInstances()) == count }, "all instances are known")
}

// chosen counts what a provider returns in a number of calls.
func (s *scene) chosen(p *discovery.ServiceProvider[string], calls int) map[string]int {
	s.Helper()
	counts := make(map[string]int)
	for range calls {
		i, err := p.Instance()
		s.must(err)
		counts[i.ID]++
	}
	return counts
}

func TestProviderStrategies(t *testing.T) {
	const calls = 4000
	weight := func(i order) float64 {
		return map[string]float64{"a": 1, "b": 3, "c": 0, "d": math.NaN()}[i.ID]
	}
	share := func(part float64) (from, to int) {
		if part == 0 || part == 1 {
			return int(part * calls), int(part * calls)
		}
		return int((part - 0.06) * calls), int((part + 0.06) * calls) // eight times the standard deviation
	}
	for name, tt := range map[string]struct {
		strategy discovery.Strategy[string]
		want     map[string]float64 // the share of each
	}{
		"random":   {discovery.Random[string](), map[string]float64{"a": .25, "b": .25, "c": .25, "d": .25}},
		"weighted": {discovery.Weighted(weight), map[string]float64{"a": .25, "b": .75, "c": 0, "d": 0}},
		"fewest":   {discovery.FewestInFlight[string](), map[string]float64{"a": .25, "b": .25, "c": .25, "d": .25}},
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.register(s.discover(s.client), "a", "b", "c", "d")
				p := s.provider(discovery.WithStrategy(tt.strategy))
				s.awaitAll(p, 4)
				counts := s.chosen(p, calls)
				for id, part := range tt.want {
					if from, to := share(part); counts[id] < from || counts[id] > to {
						t.Errorf("%s: %d of %d", id, counts[id], calls)
					}
				}
			})
		})
	}
}

func TestProviderRoundRobinTakesEachInTurn(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a", "b", "c")
		p := s.provider()
		s.awaitAll(p, 3)
		if diff := cmp.Diff(map[string]int{"a": 100, "b": 100, "c": 100}, s.chosen(p, 300)); diff != "" {
			t.Errorf("chosen:\n%s", diff)
		}
	})
}

func TestProviderStickyStaysUntilItsInstanceIsGone(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a", "b", "c")
		p := s.provider(discovery.WithStrategy(discovery.Sticky(discovery.RoundRobin[string]())))
		s.awaitAll(p, 3)
		first, err := p.Instance()
		s.must(err)
		s.must(d.Update(s.ctx, orders(first.ID, "newer")))
		testenv.Eventually(s, func() bool {
			i, err := p.Instance()
			s.must(err)
			if i.ID != first.ID {
				t.Errorf("%s, then %s", first.ID, i.ID)
			}
			return i.Payload == "newer"
		}, "the newer data of the same instance")
		s.must(d.Unregister(s.ctx, first))
		s.awaitAll(p, 2)
		second, err := p.Instance()
		s.must(err)
		if diff := cmp.Diff(map[string]int{second.ID: 50}, s.chosen(p, 50)); diff != "" || second.ID == first.ID {
			t.Errorf("chosen:\n%s", diff)
		}
	})
}

func TestProviderFewestInFlightSparesTheBusyOne(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a", "b")
		p := s.provider(discovery.WithStrategy(discovery.FewestInFlight[string]()))
		s.awaitAll(p, 2)
		busy, err := p.Pick(s.ctx)
		s.must(err)
		if counts := s.chosen(p, 50); counts[busy.Instance.ID] > 0 {
			t.Errorf("the busy instance is chosen: %v", counts)
		}
		other, err := p.Pick(s.ctx)
		s.must(err)
		if other.Instance.ID == busy.Instance.ID {
			t.Errorf("%s is picked twice", busy.Instance.ID)
		}
		busy.Done(nil)
		if counts := s.chosen(p, 50); counts[other.Instance.ID] > 0 {
			t.Errorf("the busy instance is chosen: %v", counts)
		}
		other.Done(nil)
	})
}

func TestProviderLeavesOutDisabledAndFiltered(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a", "b", "c")
		p := s.provider(discovery.WithFilter(func(i order) bool { return i.ID != "a" }))
		s.awaitAll(p, 2)
		off := orders("b", "b")
		off.Disabled = true
		s.must(d.Update(s.ctx, off))
		s.awaitAll(p, 1)
		if diff := cmp.Diff(map[string]int{"c": 10}, s.chosen(p, 10)); diff != "" {
			t.Errorf("chosen:\n%s", diff)
		}
		s.must(d.Unregister(s.ctx, orders("c", "")))
		s.awaitAll(p, 0)
		_, err := p.Instance()
		s.wantErr(err, discovery.ErrNoInstance)
	})
}

func TestProviderInstanceIsDownForAWhile(t *testing.T) {
	const timeout = 3 * time.Second
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a")
		p := s.provider(discovery.WithDownInstancePolicy[string](timeout, 2))
		s.awaitAll(p, 1)
		i, err := p.Instance()
		s.must(err)
		p.NoteError(i)
		if _, err := p.Instance(); err != nil {
			t.Errorf("down after one error: %v", err)
		}
		before := time.Now()
		pick, err := p.Pick(s.ctx)
		s.must(err)
		pick.Done(errors.New("no answer"))
		_, err = p.Instance()
		if s.wantErr(err, discovery.ErrNoInstance); len(p.AllInstances()) > 0 {
			t.Error("AllInstances has it")
		}
		again, err := p.Pick(s.ctx) // waits until it is up
		s.must(err)
		again.Done(nil)
		if waited := time.Since(before); waited < timeout {
			t.Errorf("up after %v", waited)
		}

		// An instance that registers anew is up at once.
		p = s.provider(discovery.WithDownInstancePolicy[string](time.Hour, 1))
		s.awaitAll(p, 1)
		p.NoteError(again.Instance)
		s.awaitAll(p, 0)
		s.must(d.Unregister(s.ctx, again.Instance))
		s.register(d, "a")
		_, err = p.Pick(s.ctx)
		s.must(err)
	})
}

func TestProviderPickWaitsForTheFirst(t *testing.T) {
	inScene(t, func(s *scene) {
		p := s.provider()
		_, err := p.Instance()
		s.wantErr(err, discovery.ErrNoInstance)
		short, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
		defer cancel()
		_, err = p.Pick(short)
		s.wantErr(err, context.DeadlineExceeded)
		s.wantErr(err, discovery.ErrNoInstance)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				pick, err := p.Pick(s.ctx)
				if err != nil || pick.Instance.ID != "a" {
					t.Errorf("picked %+v, %v", pick.Instance, err)
				}
				pick.Done(nil)
			})
		}
		s.register(s.discover(s.client), "a")
		all.Wait()
	})
}

func TestProviderClosedWakesThoseWhoWait(t *testing.T) {
	inScene(t, func(s *scene) {
		p := s.provider()
		done := make(chan error, 1)
		go func() {
			_, err := p.Pick(s.ctx)
			done <- err
		}()
		s.must(p.Close())
		s.wantErr(<-done, discovery.ErrClosed)
		s.must(p.Close())
	})
}

func TestProviderRefusesBadArguments(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		for name, p := range map[string]*discovery.ServiceProvider[string]{
			"no name":     d.Provider(""),
			"a path":      d.Provider("//a"),
			"no strategy": d.Provider("a", discovery.WithStrategy[string](nil)),
			"no error":    d.Provider("a", discovery.WithDownInstancePolicy[string](time.Second, 0)),
			"no time":     d.Provider("a", discovery.WithDownInstancePolicy[string](30, 2)),
		} {
			if _, err := p.Instance(); !errors.Is(err, discovery.ErrNotStarted) {
				t.Errorf("%s: before Start: %v", name, err)
			}
			if err := p.Start(s.ctx); err == nil || errors.Is(err, framework.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A pick of a thousand instances allocates nothing.
func TestProviderPickAllocatesNothing(t *testing.T) { // it counts the allocations of the process
	play(t, func(s *scene) {
		d := s.discover(s.client)
		var all sync.WaitGroup
		for n := range 1000 {
			all.Go(func() {
				i := discovery.NewServiceInstance[string]("orders", "10.0.0.7", n+1)
				if err := d.Register(s.ctx, i); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		p := s.provider()
		s.awaitAll(p, 1000)
		fewest := math.Inf(1)
		for range 5 { // the cache may still take in what the last registration has changed
			fewest = min(fewest, testing.AllocsPerRun(100, func() {
				pick, err := p.Pick(s.ctx)
				if err != nil {
					t.Error(err)
				}
				pick.Done(nil)
			}))
		}
		if fewest > 0 {
			t.Errorf("%v allocations", fewest)
		}
	})
}

// A weight may be anything that a float64 can be.
func TestWeightedNeverChoosesWithoutAWeight(t *testing.T) {
	for name, weight := range map[string]float64{
		"infinite": math.Inf(1), "largest": math.MaxFloat64, "smallest": math.SmallestNonzeroFloat64,
	} {
		t.Run(name, func(t *testing.T) {
			strategy := discovery.Weighted(func(i order) float64 {
				return map[string]float64{"a": 0, "b": weight, "c": weight, "d": 0, "e": math.Inf(-1)}[i.ID]
			})
			var all []*discovery.Candidate[string]
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				all = append(all, &discovery.Candidate[string]{Instance: orders(id, id)})
			}
			chosen := map[string]int{}
			for range 1000 {
				c := strategy.Choose(all)
				if c == nil || c.Instance.ID != "b" && c.Instance.ID != "c" {
					t.Fatalf("chosen: %+v", c)
				}
				chosen[c.Instance.ID]++
			}
			if len(chosen) != 2 { // of equal weights
				t.Errorf("chosen: %v", chosen)
			}
			if c := strategy.Choose(all[3:]); c != nil {
				t.Errorf("chosen without a weight: %+v", c)
			}
		})
	}
}

// The time of a node has milliseconds, that of the program may have more.
func TestProviderNotesErrorsOfAnInstanceThatTheProgramMade(t *testing.T) {
	inScene(t, func(s *scene) {
		i := orders("a", "a")
		i.RegistrationTime = time.UnixMicro(1_700_000_000_000_123)
		s.must(s.discover(s.client).Register(s.ctx, i))
		p := s.provider(discovery.WithDownInstancePolicy[string](time.Hour, 1))
		s.awaitAll(p, 1)
		p.NoteError(i)
		s.awaitAll(p, 0)
	})
}

// The error says why none of the instances is chosen.
func TestProviderSaysWhyThereIsNoInstance(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		p := s.provider(discovery.WithDownInstancePolicy[string](time.Hour, 1),
			discovery.WithFilter(func(i order) bool { return i.Payload != "filtered" }),
			discovery.WithStrategy(discovery.Weighted(func(order) float64 { return 0 })))
		s.wantNone(p, "/services/orders: no instance")
		s.must(d.Register(s.ctx, orders("filtered", "filtered")))
		s.must(d.Register(s.ctx, orders("down", "")))
		s.must(d.Register(s.ctx, orders("unchosen", "")))
		off := orders("disabled", "")
		off.Disabled = true
		s.must(d.Register(s.ctx, off))
		_, err := s.client.Create().ForPath(s.ctx, base+"/orders/x", []byte("no instance"))
		s.must(err)
		s.awaitAll(p, 2)
		_, err = p.Instance() // it sorts out the candidates before one is down
		s.wantErr(err, discovery.ErrNoInstance)
		for _, i := range p.AllInstances() {
			if i.ID == "down" {
				p.NoteError(i)
			}
		}
		s.wantNone(p, "no instance: of 5 nodes 1 are no instance, 1 disabled, 1 down, 1 filtered out, "+
			"1 not chosen")
	})
}

// An empty service that cannot be listed is not empty for sure.
func TestProviderSaysThatItMayNotLookAtTheService(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a")
		s.allow(base+"/orders", 0)
		p := s.discover(s.reader).Provider("orders")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		s.must(p.Start(s.ctx))
		_, err := p.Instance()
		s.wantErr(err, zk.ErrNoAuth)
		s.wantErr(err, discovery.ErrNoInstance)
		s.allow(base+"/orders", zk.PermAll)
	})
}

// wantNone waits for an error of Instance, and of Pick.
func (s *scene) wantNone(p *discovery.ServiceProvider[string], want string) {
	s.Helper()
	testenv.Eventually(s, func() bool {
		_, err := p.Instance()
		s.wantErr(err, discovery.ErrNoInstance)
		return err != nil && strings.HasSuffix(err.Error(), want)
	}, want)
	_, err := p.Pick(s.ended())
	s.wantErr(err, discovery.ErrNoInstance)
	s.wantErr(err, context.Canceled)
	if err != nil && !strings.HasSuffix(err.Error(), want) {
		s.Errorf("the error is %q, want %q", err, want)
	}
}
