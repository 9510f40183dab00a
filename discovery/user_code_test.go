package discovery_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// strangeSerializer calls a function for each instance before it decodes it.
type strangeSerializer struct {
	discovery.InstanceSerializer[string]
	before func(i order)
}

func (s strangeSerializer) Decode(data []byte) (order, error) {
	i, err := s.InstanceSerializer.Decode(data)
	if err == nil {
		s.before(i)
	}
	return i, err
}

// strategyFunc is a strategy of the program.
type strategyFunc func(candidates []*discovery.Candidate[string]) *discovery.Candidate[string]

func (f strategyFunc) Choose(candidates []*discovery.Candidate[string]) *discovery.Candidate[string] {
	return f(candidates)
}

// strange returns what a program can give to a provider, with code in each that calls before.
func (s *scene) strange(before func(i order)) map[string]*discovery.ServiceProvider[string] {
	s.Helper()
	plain, err := discovery.NewInstanceSerializer[string]()
	s.must(err)
	serializer := discovery.WithSerializer[string](strangeSerializer{plain, before})
	weight := func(i order) float64 { before(i); return 1 }
	return map[string]*discovery.ServiceProvider[string]{
		"a filter": s.discover(s.reader).Provider("orders", discovery.WithFilter(func(i order) bool {
			before(i)
			return true
		})),
		"the weight": s.discover(s.reader).Provider("orders", discovery.WithStrategy(discovery.Weighted(weight))),
		"the weight in Sticky": s.discover(s.reader).Provider("orders",
			discovery.WithStrategy(discovery.Sticky(discovery.Weighted(weight)))),
		"the serializer": s.discover(s.reader, serializer).Provider("orders"),
	}
}

// unhandled returns a function that returns the unhandled errors of a client so far.
func (s *scene) unhandled(client *framework.Client) func() []string {
	var mu sync.Mutex
	var all []string
	client.AddUnhandledErrorListener(func(_ context.Context, err framework.UnhandledError) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, err.Err.Error())
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// An instance on which code of the program panics, or ends its goroutine, is not chosen. It holds up no other, and the
// reason is reported.
func TestProviderCodeThatFailsHoldsUpNoOtherInstance(t *testing.T) {
	for how, fail := range map[string]func(){"panics": func() { panic("on purpose") }, "exits": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			inScene(t, func(s *scene) {
				d := s.discover(s.client)
				s.register(d, "a", "bad")
				s.must(s.reader.Sync().ForPath(s.ctx, "/"))
				reported := s.unhandled(s.reader)
				all := s.strange(func(i order) {
					if i.ID == "bad" {
						fail()
					}
				})
				for _, p := range all {
					s.must(p.Start(s.ctx))
				}
				s.register(d, "b")
				for what, p := range all {
					testenv.Eventually(s, func() bool {
						counts := make(map[string]int)
						for range 100 {
							i, err := p.Instance()
							s.must(err)
							counts[i.ID]++
						}
						return strings.HasPrefix(what, "the weight in") || counts["b"] > 0 && counts["bad"] == 0
					}, what+": the instances around it are chosen")
					name := strings.TrimSuffix(what, " in Sticky")
					testenv.Eventually(s, func() bool {
						return slices.ContainsFunc(reported(), func(err string) bool {
							return strings.Contains(err, name) && strings.Contains(err, base+"/orders/bad")
						})
					}, what+": the reason is reported")
				}
			})
		})
	}
}

// Code of the program that blocks holds up the provider that has it, and nothing else: no other provider or cache of
// the service, no registration, and no end.
func TestProviderCodeThatBlocksHoldsUpItselfAlone(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		release, entered := make(chan struct{}), make(chan struct{}, 10)
		all := s.strange(func(i order) {
			if i.ID == "b" {
				entered <- struct{}{}
				<-release
			}
		})
		defer close(release)
		for _, p := range all {
			s.must(p.Start(s.ctx))
		}
		same := s.discover(s.reader)
		c, other := same.Cache("orders"), same.Provider("orders")
		s.must(c.Start(s.ctx))
		s.must(other.Start(s.ctx))
		s.register(d, "b")
		for range all {
			<-entered
		}
		s.register(d, "c")
		s.awaitAll(other, 3)
		testenv.Eventually(s, func() bool { return len(c.Instances()) == 3 }, "the cache has all")
		for what, p := range all {
			i, err := p.Instance()
			if s.must(err); i.ID != "a" {
				t.Errorf("%s: %s is chosen", what, i.ID)
			}
			p.NoteError(i)
		}
		s.must(d.Unregister(s.ctx, orders("a", "")))
		for what, p := range all {
			testenv.Eventually(s, func() bool { return len(p.AllInstances()) == 0 }, what+": what has gone is not chosen")
			_, err := p.Pick(s.ended())
			s.wantErr(err, discovery.ErrNoInstance)
		}
		late := s.strange(func(order) { <-release })
		for what, p := range late {
			if err := p.Start(s.ended()); err == nil {
				t.Errorf("%s: started", what)
			}
			s.must(p.Close())
		}
		for _, p := range all {
			s.must(p.Close())
		}
	})
}

// What has gone while code of the program looked at it does not come back, and what is registered anew takes the place
// of its earlier life at once.
func TestProviderCodeThatIsLateBringsBackNothing(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		release, entered := make(chan struct{}), make(chan struct{}, 10)
		p := s.provider(discovery.WithFilter(func(i order) bool {
			if i.Payload == "slow" {
				entered <- struct{}{}
				<-release
			}
			return true
		}))
		gone := orders("gone", "slow")
		s.must(d.Register(s.ctx, gone))
		<-entered
		s.must(d.Unregister(s.ctx, gone))
		restore := s.other.Faults().RefuseConnects() // so that both lives are one change
		lost := testclient.AwaitState(s.ctx, s, s.reader, framework.Suspended)
		s.other.Faults().CutAll()
		lost()
		s.must(d.Unregister(s.ctx, orders("a", "")))
		s.must(d.Register(s.ctx, orders("a", "slow")))
		if n := len(p.AllInstances()); n != 1 {
			t.Errorf("%d instances in the outage", n)
		}
		restore()
		s.awaitAll(p, 0)
		close(release)
		s.awaitAll(p, 1)
		if i := p.AllInstances()[0]; i.ID != "a" || i.Payload != "slow" {
			t.Errorf("the instance is %+v", i)
		}
	})
}

// A provider, its cache and the discovery can be called from any code of the program.
func TestProviderCodeMayCallBackIn(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a", "b")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		c := s.cacheOf()
		var mu sync.Mutex
		var all map[string]*discovery.ServiceProvider[string]
		use := func(i order) {
			mu.Lock()
			providers := maps.Clone(all)
			mu.Unlock()
			for _, p := range providers {
				_, _ = p.Instance()
				p.NoteError(i)
				p.AllInstances()
			}
			c.Instances()
			c.Entries()
		}
		started := s.strange(use)
		var sticky *discovery.ServiceProvider[string]
		depth := 0
		sticky = s.discover(s.reader).Provider("orders", discovery.WithStrategy(discovery.Sticky[string](strategyFunc(
			func(candidates []*discovery.Candidate[string]) *discovery.Candidate[string] {
				if depth++; depth == 1 {
					_, err := sticky.Instance()
					s.must(err)
					sticky.NoteError(candidates[0].Instance)
				}
				return candidates[0]
			}))))
		mu.Lock()
		all = started
		mu.Unlock()
		for _, p := range started {
			s.must(p.Start(s.ctx))
		}
		s.must(sticky.Start(s.ctx))
		_, err := sticky.Instance()
		s.must(err)
		s.register(d, "c")
		for what, p := range started {
			testenv.Eventually(s, func() bool {
				_, err := p.Instance()
				return err == nil || strings.Contains(err.Error(), "of 3 nodes")
			}, what+" goes on")
		}
	})
}

// A strategy runs on the goroutine of its caller, which gets its panic. The provider goes on.
func TestProviderStrategyThatPanicsIsAnError(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		fails := true
		choose := strategyFunc(func(all []*discovery.Candidate[string]) *discovery.Candidate[string] {
			if fails {
				panic("on purpose")
			}
			return all[0]
		})
		for _, strategy := range []discovery.Strategy[string]{choose, discovery.Sticky[string](choose)} {
			fails = true
			p := s.provider(discovery.WithStrategy(strategy))
			_, err := p.Instance()
			_, pickErr := p.Pick(s.ctx)
			for _, err := range []error{err, pickErr} {
				if !strings.Contains(fmt.Sprint(err), "panic in the strategy: on purpose") {
					t.Errorf("the error is %v", err)
				}
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				fails = false
				_, err := p.Instance()
				s.must(err)
			}()
			<-ended
		}
	})
}

// A strategy that makes its candidate is an error for its caller alone.
func TestProviderStrategyThatMakesItsCandidateIsAnError(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		choose := strategyFunc(func(all []*discovery.Candidate[string]) *discovery.Candidate[string] {
			return &discovery.Candidate[string]{Instance: all[0].Instance}
		})
		for _, strategy := range []discovery.Strategy[string]{choose, discovery.Sticky[string](choose)} {
			p := s.provider(discovery.WithStrategy(strategy))
			for range 2 {
				_, err := p.Instance()
				_, pickErr := p.Pick(s.ctx)
				for _, err := range []error{err, pickErr} {
					if !strings.Contains(fmt.Sprint(err), "none of its candidates") {
						t.Errorf("the error is %v", err)
					}
				}
			}
		}
		one := []*discovery.Candidate[string]{{Instance: orders("a", "")}, {Instance: orders("b", "")}}
		if c := discovery.FewestInFlight[string]().Choose(one); c == nil || c.InFlight() != 0 {
			t.Errorf("chosen: %+v", c)
		}
	})
}

// A strategy that ends its goroutine, or blocks, holds no lock.
func TestStickyWhoseFirstExitsOrBlocksGoesOn(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a", "b")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		var mu sync.Mutex
		calls, release := 0, make(chan struct{})
		p := s.provider(discovery.WithStrategy(discovery.Sticky[string](strategyFunc(
			func(all []*discovery.Candidate[string]) *discovery.Candidate[string] {
				mu.Lock()
				calls++
				call := calls
				mu.Unlock()
				switch call {
				case 1:
					runtime.Goexit()
				case 2:
					<-release
					return all[1]
				}
				return all[0]
			}))))
		var early sync.WaitGroup
		early.Go(func() { _, _ = p.Instance() })
		early.Wait()
		early.Go(func() {
			i, err := p.Instance()
			if s.must(err); i.ID != "a" {
				t.Errorf("a call that was overtaken has %s", i.ID)
			}
		})
		testenv.Eventually(s, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return calls == 2
		}, "a choice blocks")
		_, err := p.Instance()
		s.must(err)
		close(release)
		early.Wait()
	})
}

// Filters and weights look at what has changed alone.
func TestFiltersAndWeightsRunForChangesAlone(t *testing.T) {
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		s.register(d, "a", "b", "c")
		s.must(s.reader.Sync().ForPath(s.ctx, "/"))
		var mu sync.Mutex
		calls := make(map[string]int)
		count := func(what string, i order) {
			mu.Lock()
			defer mu.Unlock()
			calls[what+" "+i.ID+" "+i.Payload]++
		}
		p := s.provider(discovery.WithDownInstancePolicy[string](time.Second, 1),
			discovery.WithFilter(func(i order) bool { count("filter", i); return true }),
			discovery.WithStrategy(discovery.Weighted(func(i order) float64 { count("weight", i); return 1 })))
		s.awaitAll(p, 3)
		for range 20 {
			pick, err := p.Pick(s.ctx)
			s.must(err)
			pick.Done(context.Canceled)
		}
		s.must(d.Update(s.ctx, orders("b", "newer")))
		s.register(d, "d")
		s.must(d.Unregister(s.ctx, orders("a", "")))
		want := map[string]int{}
		for _, i := range []string{"a a", "b b", "c c", "b newer", "d d"} {
			want["filter "+i], want["weight "+i] = 1, 1
		}
		testenv.Eventually(s, func() bool {
			_, _ = p.Instance()
			mu.Lock()
			defer mu.Unlock()
			return len(calls) == len(want)
		}, "the changes are known")
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("calls:\n%s", diff)
		}
	})
}

// A strategy of the program gets no candidate that is down, and one that is up again.
func TestStrategyOfTheProgramGetsThoseThatAreUp(t *testing.T) {
	inScene(t, func(s *scene) {
		s.register(s.discover(s.client), "a", "b", "c")
		var seen []string
		policy := discovery.WithDownInstancePolicy[string](3*time.Second, 1)
		p := s.provider(policy, discovery.WithStrategy[string](strategyFunc(
			func(all []*discovery.Candidate[string]) *discovery.Candidate[string] {
				ids := ""
				for _, c := range all {
					ids += c.Instance.ID
				}
				seen = append(seen, ids)
				return all[len(all)-1]
			})))
		s.awaitAll(p, 3)
		for range 3 {
			pick, err := p.Pick(s.ctx)
			s.must(err)
			pick.Done(context.Canceled)
			<-time.After(10 * time.Millisecond) // so that they are up in another order
		}
		_, err := p.Instance()
		s.wantErr(err, discovery.ErrNoInstance)
		if diff := cmp.Diff([]string{"abc", "ab", "a"}, seen); diff != "" {
			t.Errorf("candidates:\n%s", diff)
		}
		_, err = p.Pick(s.ctx) // waits
		s.must(err)
		s.awaitAll(p, 3)
		_, err = p.Pick(s.ctx)
		s.must(err)
		if got := seen[len(seen)-1]; got != "abc" {
			t.Errorf("the candidates are %s when all are up", got)
		}
	})
}

// Whatever the strategy, an instance that is down is not chosen, also while the others are, and it is chosen again.
func TestProviderInstanceThatIsDownIsNotChosen(t *testing.T) {
	for name, strategy := range map[string]discovery.Strategy[string]{
		"round robin": discovery.RoundRobin[string](), "random": discovery.Random[string](),
		"fewest": discovery.FewestInFlight[string](), "sticky": discovery.Sticky(discovery.RoundRobin[string]()),
		"weighted": discovery.Weighted(func(order) float64 { return 1 }),
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				d := s.discover(s.client)
				for n := range 40 {
					s.register(d, fmt.Sprint(n))
				}
				p := s.provider(discovery.WithStrategy(strategy), discovery.WithDownInstancePolicy[string](3*time.Second, 1))
				s.awaitAll(p, 40)
				failed := make(map[string]bool)
				for range 40 {
					pick, err := p.Pick(s.ctx)
					s.must(err)
					if failed[pick.Instance.ID] {
						t.Errorf("%s is down and chosen", pick.Instance.ID)
					}
					failed[pick.Instance.ID] = true
					pick.Done(context.Canceled)
				}
				_, err := p.Instance()
				s.wantErr(err, discovery.ErrNoInstance)
				if want := "of 40 nodes 0 are no instance, 0 disabled, 40 down, 0 filtered out, 0 not chosen"; err != nil &&
					!strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v", err)
				}
				s.awaitAll(p, 40)
				if counts := s.chosen(p, 400); name != "sticky" && len(counts) < 20 {
					t.Errorf("%d are chosen when all are up", len(counts))
				}
			})
		})
	}
}

// A node that is no instance is reported as soon as it is seen, at the first load, too, whether or not the cache
// is asked. The listeners get those of later.
func TestNodeThatIsNoInstanceIsReportedToListeners(t *testing.T) {
	for name, start := range map[string]func(d *services) (add func(func(discovery.Change[string])), start startFunc){
		"cache": func(d *services) (func(func(discovery.Change[string])), startFunc) {
			c := d.Cache("orders")
			return func(fn func(discovery.Change[string])) {
				c.AddListener(func(_ context.Context, change discovery.Change[string]) { fn(change) })
			}, c.Start
		},
		"provider": func(d *services) (func(func(discovery.Change[string])), startFunc) { //nolint:unparam // a case
			return nil, d.Provider("orders").Start
		},
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.register(s.discover(s.client), "a")
				reported := s.unhandled(s.reader)
				wantReported := func(path string) {
					s.Helper()
					testenv.Eventually(s, func() bool {
						return slices.ContainsFunc(reported(), func(err string) bool { return strings.Contains(err, path) })
					}, path+" is reported")
				}
				corrupt := func(path string, data string) {
					s.Helper()
					_, err := s.client.Create().ForPath(s.ctx, path, []byte(data))
					s.must(err)
				}
				corrupt(base+"/orders/first", "{")
				s.must(s.reader.Sync().ForPath(s.ctx, "/"))
				add, start := start(s.discover(s.reader))
				changes := make(chan discovery.Change[string], 10)
				if add != nil {
					add(func(change discovery.Change[string]) { changes <- change })
				}
				s.must(start(s.ctx))
				wantReported(base + "/orders/first")
				corrupt(base+"/orders/second", "")
				wantReported(base + "/orders/second")
				if add != nil {
					if c := <-changes; c.Path != base+"/orders/second" || c.Err == nil || c.Gone {
						t.Errorf("the listener has %+v", c)
					}
				}
				if n := len(reported()); n != 2 {
					t.Errorf("%d reports: %v", n, reported())
				}
			})
		})
	}
}

type startFunc = func(context.Context) error
