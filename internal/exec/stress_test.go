package exec_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
)

// dice is a source of chance for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 7))} }

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// upTo returns a duration below most.
func (d *dice) upTo(most time.Duration) time.Duration {
	return time.Duration(d.below(int(most)))
}

// moody makes the server cut, refuse, forget sessions, keep silent for a while, and go away for a while.
func (f *fixture) moody(d *dice) {
	f.server.serve = func(p *peer, r *request) bool {
		switch n := d.below(100); {
		case n < 4:
			p.cut()
		case n < 6:
			p.answer(r, jute.CodeOK)
			p.cut()
		case n < 10:
			p.answer(r, jute.CodeNoNode)
		case n < 12:
			<-time.After(d.upTo(2 * time.Second))
			return false
		case n < 13:
			f.server.down.Store(true)
			time.AfterFunc(d.upTo(30*time.Second), func() { f.server.down.Store(false) })
			p.cut()
		default:
			return false
		}
		return true
	}
	f.server.greet = func(p *peer, req jute.ConnectRequest) bool {
		switch n := d.below(100); {
		case n < 10 && req.SessionID != 0:
			p.expire()
		case n < 15:
			p.cut()
		case n < 18: // mute
		default:
			return false
		}
		return true
	}
}

// tracked is an operation that counts what happens to it.
type tracked struct {
	steps
	ends, cleanUps atomic.Int32
	lastCleanUp    atomic.Value // of error, wrapped
}

func newTracked(paths ...string) *tracked {
	o := &tracked{steps: *newSteps(paths...)}
	o.Protocol = o
	return o
}

func (o *tracked) Deliver() { o.ends.Add(1) }

func (o *tracked) CleanUp(err error) {
	o.cleanUps.Add(1)
	o.lastCleanUp.Store(fmt.Sprint(err))
}

func TestEveryAcceptedOperationEndsOnce(t *testing.T) {
	// More seeds are more bubbles, in which the race detector of Go 1.26 gives up now and then: golang/go#78156.
	const workers, seeds = 8, 40
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			d := newDice(seed)
			f := start(t, pauses{100 * time.Millisecond, time.Second, 0, 2 * time.Second}, seed%2 == 0)
			f.moody(d)
			if seed%2 == 1 {
				time.AfterFunc(d.upTo(20*time.Second), f.connect)
			}
			var mu sync.Mutex
			var background []*tracked
			stopped := make(chan struct{})
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for {
						select {
						case <-stopped:
							return
						case <-time.After(d.upTo(300 * time.Millisecond)):
						}
						op := newTracked([]string{"/a", "/b", "/c"}[:1+d.below(3)]...)
						ctx, cancel := context.WithTimeout(t.Context(), 1+d.upTo(10*time.Second))
						if d.below(10) == 0 {
							ctx = exec.WithSingleAttempt(ctx)
						}
						switch op.Detached = d.below(10) == 0; {
						case op.Detached || d.below(2) == 0:
							if f.Go(ctx, &op.Operation) == nil {
								mu.Lock()
								background = append(background, op)
								mu.Unlock()
							}
						default:
							err := f.Do(ctx, &op.Operation)
							cleanUps := op.cleanUps.Load()
							if ctx.Err() == nil && op.Attempts() > 0 && (err != nil) != (cleanUps == 1) {
								t.Errorf("seed %d: ended with %v, cleaned up %d times", seed, err, cleanUps)
							}
							mu.Lock()
							background = append(background, op) // its end may still be to come
							mu.Unlock()
							if err == nil {
								op.ends.Add(1)
							}
						}
						cancel()
					}
				})
			}
			<-time.After(d.upTo(90 * time.Second))
			f.Stop()
			close(stopped)
			wg.Wait()
			f.close()
			for _, op := range background {
				ends, cleanUps := op.ends.Load(), op.cleanUps.Load()
				switch {
				case op.Background() && ends != 1:
					t.Errorf("seed %d: delivered %d times", seed, ends)
				case op.Background() && (op.Result() != nil) != (cleanUps == 1):
					t.Errorf("seed %d: ended with %v, cleaned up %d times", seed, op.Result(), cleanUps)
				case !op.Background() && op.Attempts() > 0 && ends+cleanUps != 1:
					t.Errorf("seed %d: %d ends, cleaned up %d times", seed, ends, cleanUps)
				}
			}
			if t.Failed() {
				t.FailNow()
			}
		})
		if t.Failed() {
			return
		}
	}
}
