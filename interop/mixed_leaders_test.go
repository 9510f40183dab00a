package interop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

// electionKind is a way to elect a leader that Go and Java have. A participant reports two kinds of events.
type electionKind struct{ kind, begun, ended string }

var (
	latch    = electionKind{"latch", "isLeader", "notLeader"}
	selector = electionKind{"selector", "taken", "released"}
)

// candidate takes part in an election.
type candidate struct {
	*peer
	id           string
	begun        func(context.Context) error // waits until it leads, once more
	ended        func(context.Context) error // waits until it has noticed that it does not, once more
	leads        func() (bool, error)
	leader       func(context.Context) (string, error)
	participants func(context.Context) ([]interop.Participant, error)
	resign       func(context.Context) error // of a selector: it stands in line again
	close        func(context.Context) error
}

// stand has a peer take part.
func (j *peer) stand(k electionKind, id string) (*candidate, error) {
	o := &object{j: j, kind: k.kind, name: newName()}
	awaitEvent := func(kind string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := o.awaitEvent(ctx, kind)
			return err
		}
	}
	call := func(ctx context.Context, op string, args interop.Args, out any) error {
		return j.Call(ctx, k.kind+op, o.args(args), out)
	}
	return &candidate{
		peer:  j,
		id:    id,
		begun: awaitEvent(k.begun),
		ended: awaitEvent(k.ended),
		leads: func() (yes bool, err error) {
			err = call(j.ctx, "HasLeadership", nil, &yes)
			return yes, err
		},
		leader: func(ctx context.Context) (id string, err error) {
			err = call(ctx, "Leader", nil, &id)
			return id, err
		},
		participants: func(ctx context.Context) (all []interop.Participant, err error) {
			err = call(ctx, "Participants", nil, &all)
			return all, err
		},
		resign: func(ctx context.Context) error { return call(ctx, "Relinquish", nil, nil) },
		close: func(ctx context.Context) error {
			return call(ctx, "Close", interop.Args{"mode": "NOTIFY_LEADER"}, nil)
		},
	}, call(j.ctx, "Start", interop.Args{"path": meetingPath, "participant": id, "autoRequeue": true}, nil)
}

// errNoTurn is the end of the patience with a participant.
var errNoTurn = errors.New("interop: it does not get its turn")

// awaitTurn waits until a candidate leads. A selector of Java 5.4.0 that has lost its session may be in line no more:
// it has to start again.
func (c *candidate) awaitTurn(ctx context.Context) error {
	if c.language != javaPeer {
		return c.begun(ctx)
	}
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := c.begun(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return errNoTurn
	}
	return err
}

// asLock makes a lock of an election: the leader holds it.
func asLock(k electionKind) lockKind {
	return lockKind{
		of: func(p *peer) *contender {
			return &contender{acquire: func(ctx context.Context) (*held, error) {
				for {
					c, err := p.stand(k, newName())
					if err != nil {
						return nil, err
					}
					if err = c.awaitTurn(ctx); !errors.Is(err, errNoTurn) {
						return &held{release: c.close}, err
					}
					if err := c.close(ctx); err != nil {
						return nil, err
					}
				}
			}}
		},
		alone: true,
	}
}

// election is an election under way.
type election struct {
	*meeting
	line []*candidate // in order, the leader first
}

// elect has two clients of Go and two of Java take part, one after the other.
func elect(t *testing.T, k electionKind) *election {
	t.Helper()
	e := &election{meeting: meetApart(t, 2)}
	for i, s := range e.peers {
		c, err := s.stand(k, fmt.Sprint(s, " ", i))
		if err != nil {
			t.Fatal(err)
		}
		e.line = append(e.line, c)
		testenv.Eventually(t, func() bool { return e.owned(e.session(s)) == 1 }, "one takes part")
	}
	return e
}

// firstLeads waits until the first has begun to lead and the others stand behind it.
func (e *election) firstLeads() {
	e.t.Helper()
	first := e.line[0]
	// It may report a leadership that is over: when its connection is lost and its session ended, it ends its leadership,
	// and it may have the time to connect again and to lead once more.
	for leads := false; !leads; {
		err := first.begun(e.ctx)
		if err == nil {
			leads, err = first.leads()
		}
		if err != nil {
			e.t.Fatalf("%s does not lead: %v", first.id, err)
		}
	}
	e.lineStands()
}

// lineStands waits until all are in line. All must report that, and that the first one leads.
func (e *election) lineStands() {
	e.t.Helper()
	first := e.line[0]
	var want []interop.Participant
	for _, c := range e.line {
		want = append(want, interop.Participant{ID: c.id, Leader: c == first})
	}
	for _, c := range e.line {
		var reported []interop.Participant
		var err error
		defer func() {
			if e.t.Failed() {
				e.t.Logf("%s gets %v, not %v, error %v", c.id, reported, want, err)
			}
		}()
		testenv.Eventually(e.t, func() bool {
			reported, err = c.participants(e.ctx)
			return slices.Equal(reported, want)
		}, "all take part, for everybody")
		if id, err := c.leader(e.ctx); id != first.id || err != nil {
			e.t.Errorf("%s gets that %s leads, error %v", c.id, id, err)
		}
	}
	for _, c := range e.line {
		if leads, err := c.leads(); leads != (c == first) || err != nil {
			e.t.Errorf("%s says that it leads: %t, error %v", c.id, leads, err)
		}
	}
}

// step has the leader end its leadership.
func (e *election) step(end func(*candidate) error) {
	e.t.Helper()
	first := e.line[0]
	if err := end(first); err != nil {
		e.t.Fatalf("%s: %v", first.id, err)
	}
	if err := first.ended(e.ctx); err != nil {
		e.t.Fatalf("%s has not noticed: %v", first.id, err)
	}
	e.line = e.line[1:]
}

// waiterExpires ends the session of a candidate, which then queues at the end of the line.
func (e *election) waiterExpires(i int) {
	e.t.Helper()
	c := e.line[i]
	e.expire(c)
	e.line = append(slices.Concat(e.line[:i], e.line[i+1:]), c)
	e.lineStands()
}

// noneLedBesides fails if one of them has begun to lead and we did not wait for it.
func (e *election) noneLedBesides(all []*candidate) {
	e.t.Helper()
	over, cancel := context.WithCancel(e.ctx)
	cancel()
	for _, c := range all {
		if c.begun(over) == nil {
			e.t.Errorf("%s has led out of turn", c.id)
		}
	}
}

// TestNextOfGoAndJavaLeads ends the sessions of candidates and of leaders, of Go and of Java, which then queue at the
// end of the line, and closes leaders. Each time only the next one leads.
func TestNextOfGoAndJavaLeads(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	for name, kind := range map[string]electionKind{"latch": latch, "selector": selector} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := elect(t, kind)
			e.firstLeads()
			e.waiterExpires(1) // of Java
			e.waiterExpires(1) // of Go
			all := e.line
			for _, c := range all[:2] {
				// There are others in line: a latch of Java 5.4.0 whose container has vanished meanwhile may not come back.
				e.step(func(c *candidate) error {
					e.expire(c)
					return nil
				})
				e.line = append(slices.Clone(e.line), c)
				e.firstLeads()
			}
			for len(e.line) > 1 {
				e.step(func(c *candidate) error { return c.close(e.ctx) })
				e.firstLeads()
			}
			e.step(func(c *candidate) error { return c.close(e.ctx) })
			e.noneLedBesides(all[2:])
			e.awaitNothing()
		})
	}
}

// TestSelectorsOfGoAndJavaTakeTurns has each lead again and again, when all others have.
func TestSelectorsOfGoAndJavaTakeTurns(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	e := elect(t, selector)
	e.firstLeads()
	for range 2 * len(e.line) {
		first := e.line[0]
		e.step(func(c *candidate) error { return c.resign(e.ctx) })
		e.line = append(slices.Clone(e.line), first)
		e.firstLeads()
	}
	e.noneLedBesides(e.line[1:])
	for _, c := range slices.Backward(e.line) { // the leader last
		if err := c.close(e.ctx); err != nil {
			t.Error(err)
		}
	}
	e.awaitNothing()
}
