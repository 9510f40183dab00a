package simulation_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inWorld runs a test in a world without processes.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, newReport())
		w.slots = nil
		defer func() {
			w.end()
			if err := w.cluster.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, w)
	})
}

// grant is a claim of a case, and the things that end before the next one.
type grant struct {
	claim    claim
	follows  bool // the claim before it
	ends     bool // its context
	dies     bool // its process
	lostLock bool // its node
	early    bool // its node is taken away before the grant, which does not name the node
}

func TestJudge(t *testing.T) {
	writer := func(owner, token int64) claim { return claim{owner: owner, token: token} }
	reader := func(owner, token int64) claim { return claim{owner: owner, token: token, shared: true} }
	for name, tt := range map[string]struct {
		most   int
		grants []grant
		want   string // part of the violation
	}{
		"two writers": {
			grants: []grant{{claim: writer(1, 1)}, {claim: writer(2, 2)}}, want: "two hold it",
		},
		"one writer after another": {
			grants: []grant{{claim: writer(1, 1), ends: true}, {claim: writer(2, 2)}},
		},
		"a writer after a crash": {
			grants: []grant{{claim: writer(1, 1), dies: true}, {claim: writer(2, 2)}},
		},
		"a writer whose node was deleted": {
			grants: []grant{{claim: writer(1, 1), lostLock: true}, {claim: writer(2, 2)}},
		},
		"a part of a multi lock whose node was deleted before the grant": {
			grants: []grant{{claim: writer(1, 0), early: true}, {claim: writer(2, 0)}},
		},
		"one owner twice": {
			grants: []grant{{claim: writer(1, 1)}, {claim: writer(1, 1)}},
		},
		"readers": {
			grants: []grant{{claim: reader(1, 2)}, {claim: reader(2, 1)}},
		},
		"a reader beside a writer": {
			grants: []grant{{claim: writer(1, 1)}, {claim: reader(2, 2)}}, want: "two hold it",
		},
		"a writer beside a reader": {
			grants: []grant{{claim: reader(1, 1)}, {claim: writer(2, 2)}}, want: "two hold it",
		},
		"as many as there are leases": {
			most: 2, grants: []grant{{claim: reader(1, 0)}, {claim: reader(2, 0)}},
		},
		"one lease too many": {
			most:   2,
			grants: []grant{{claim: reader(1, 0)}, {claim: reader(2, 0)}, {claim: reader(3, 0)}},
			want:   "3 share what 2 may",
		},
		"a lease that was deleted": {
			most: 2, grants: []grant{{claim: reader(1, 0), lostLock: true}, {claim: reader(2, 0)}, {claim: reader(3, 0)}},
		},
		"a token that falls": {
			grants: []grant{{claim: writer(1, 2), ends: true}, {claim: writer(2, 1)}}, want: "is not above",
		},
		"a token that stays": {
			grants: []grant{{claim: writer(1, 2), ends: true}, {claim: writer(2, 2)}}, want: "is not above",
		},
		"a writer that goes on as a reader": {
			grants: []grant{{claim: writer(1, 2)}, {claim: reader(1, 2), follows: true}},
		},
		"a writer that goes on as a reader with another token": {
			grants: []grant{{claim: writer(1, 2)}, {claim: reader(1, 3), follows: true}}, want: "is not that of",
		},
		"a writer that comes again as a reader": {
			grants: []grant{{claim: writer(1, 2), ends: true}, {claim: reader(1, 3), follows: true}},
		},
		"a writer that comes again as a reader with an older token": {
			grants: []grant{{claim: writer(1, 2), ends: true}, {claim: reader(1, 1), follows: true}},
			want:   "is not above",
		},
		"a reader's token below a writer's": {
			grants: []grant{{claim: writer(1, 2), ends: true}, {claim: reader(2, 1)}}, want: "is not above",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r := newResource("/r")
				r.most = tt.most
				var before *claim
				for i, g := range tt.grants {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					c := g.claim
					c.resource, c.process, c.actor, c.context = r, &process{world: w}, "actor", ctx
					node := "/r/" + string(rune('a'+i))
					c.path = node
					if g.follows {
						c.follows = before
					}
					before = &c
					if err := createNode(w, node); err != nil {
						t.Fatal(err)
					}
					if g.early {
						w.judge.taken(r, node, c.process, 0)
						c.path = ""
					}
					w.judge.granted(&c)
					if g.ends {
						cancel()
					}
					c.process.dead.Store(g.dies)
					if g.lostLock {
						w.judge.taken(r, node, c.process, 0)
					}
				}
				checkViolation(t, w, tt.want)
			})
		})
	}
}

func createNode(w *world, path string) error {
	_, err := w.operator.Create().CreatingParentsIfNeeded().ForPath(w.ctx, path, nil)
	return err
}

func checkViolation(t *testing.T, w *world, want string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.violation; want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("violation %q, want %q", got, want)
	}
	w.ctx = context.Background() // the end is judged as well
}

// TestJudgeOfAClaimWithoutItsNode deletes the node of a claim, whose holder gets the event late or never.
func TestJudgeOfAClaimWithoutItsNode(t *testing.T) {
	for name, tt := range map[string]struct {
		known    bool          // the delete by the operator is recorded
		reported time.Duration // the time at which the holder gets the event
		want     string
	}{
		"for no reason":                    {false, time.Hour, "alive without a node"},
		"deleted, and reported in time":    {true, time.Second, ""},
		"deleted, and reported much later": {true, time.Hour, "not reported in 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.reported)
				defer cancel()
				r := newResource("/r")
				w.judge.resources = append(w.judge.resources, r)
				if err := createNode(w, "/r/a"); err != nil {
					t.Fatal(err)
				}
				watching, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					w.judge.watch(watching)
				}()
				w.judge.granted(&claim{resource: r, process: &process{world: w}, path: "/r/a", context: ctx})
				if tt.known {
					w.judge.taken(r, "/r/a", nil, time.Minute)
				}
				if err := w.delete("/r/a"); err != nil && w.ctx.Err() == nil { // a violation ends the world's context
					t.Error(err)
				}
				<-time.After(2 * time.Minute)
				stop()
				<-done
				checkViolation(t, w, tt.want)
			})
		})
	}
}

// TestHolderKeepsWhatAFaultNeeds has a holder work until it is lost, or until the fault is over.
func TestHolderKeepsWhatAFaultNeeds(t *testing.T) {
	for name, lost := range map[string]bool{"until the fault is over": false, "until it is lost": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				held, lose := context.WithCancel(t.Context())
				defer lose()
				r := newResource("/r")
				w.judge.resources = []*resource{r}
				p := &process{world: w, ctx: t.Context()}
				w.judge.granted(&claim{resource: r, process: p, context: held})
				c, release := w.judge.keep(w.random("keep"))
				if again, _ := w.judge.keep(w.random("keep")); c == nil || again != nil {
					t.Fatalf("kept: %v, then %v", c, again)
				}
				finished := make(chan bool, 1)
				go func() {
					a := &actor{process: p, random: w.random("actor")}
					finished <- a.work(t.Context(), held)
				}()
				<-time.After(10 * sessionTimeout)
				if len(finished) > 0 {
					t.Error("it has not kept the claim")
				}
				if lost {
					lose()
				} else {
					release()
				}
				if got := <-finished; got == lost {
					t.Errorf("finished: %t", got)
				}
			})
		})
	}
}

func TestActorThatNeverGetsATurnIsAViolation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.began(&actor{name: "a"})
		w.setCalm()
		w.awaitLastTurns()
		checkViolation(t, w, "no last turn")
	})
}

func TestRemainsAreAViolation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := newResource("/r")
		w.judge.resources = append(w.judge.resources, r)
		if err := createNode(w, "/r/a"); err != nil {
			t.Fatal(err)
		}
		w.awaitNoRemains()
		checkViolation(t, w, "left in the end: /r/a")
	})
}

func TestFaultsSpareAWorldWhoseProcessesAllComeAndGo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := &slot{number: 1}
		s.mu.Lock() // as while a process starts or ends
		w.slots = []*slot{s}
		defer func() { w.slots = nil }()
		for _, f := range allFaults() {
			t.Log(f.name)
			if _, undo := f.strike(w, w.random(f.name)); undo != nil {
				undo()
			}
		}
		if w.violation != "" {
			t.Error(w.violation)
		}
	})
}
