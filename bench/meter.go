package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gocurator/curator/interop"
)

// meter measures rows.
type meter struct {
	options
	servers servers
	teams   teams
	hasJava bool
}

// measure measures the selected rows. The outcome of a failed row has its error.
func measure(ctx context.Context, o options) (outcomes []*outcome, err error) {
	m := &meter{options: o, servers: servers{given: o.connect}, teams: make(teams)}
	defer func() { err = errors.Join(err, m.teams.close(), m.servers.close()) }()
	_, noJava := interop.ClassPath()
	if m.hasJava = noJava == nil; noJava != nil {
		progress("without Java: %v", noJava)
	}
	for _, r := range allRows() {
		if !o.only.MatchString(r.String()) {
			continue
		}
		out := &outcome{row: r, results: make([][]result, len(r.entries))}
		if out.err = m.row(ctx, out); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if out.err != nil {
			progress("%s: %v", r, out.err)
		}
		outcomes = append(outcomes, out)
	}
	if len(outcomes) == 0 {
		return nil, fmt.Errorf("no row matches %q", o.only)
	}
	return outcomes, nil
}

// progress reports the progress.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// row runs the rounds of a row.
func (m *meter) row(ctx context.Context, out *outcome) (err error) {
	r := out.row
	connect, err := m.servers.connectString(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.teams.leave(ctx)) }()
	warmUp, rounds := m.warmUp, m.rounds*max(r.often, 1)
	if r.fresh {
		warmUp = 0
	}
	for round := range warmUp + rounds {
		progress("%s: round %d of %d", r, round+1-warmUp, rounds)
		for i := range r.entries {
			turn := (i + round) % len(r.entries)
			e := r.entries[turn]
			if e.library == javas && !m.hasJava {
				continue
			}
			res, err := m.chunk(ctx, r, e, connect)
			if err != nil {
				return err
			}
			if round >= warmUp {
				out.results[turn] = append(out.results[turn], res)
			}
		}
	}
	return nil
}

// smallHeap limits Java's heap where its memory is measured. Without a limit the heap is many times larger than the
// data, and shrinks late and only in part. The process ends if the limit is too small.
var smallHeap = []string{"-Xmx64m", "-XX:+ExitOnOutOfMemoryError"}

// patience is the time for preparation and cleanup of a contender, beside its work.
const patience = time.Minute

// chunk runs the load of one contender for the time of a round.
func (m *meter) chunk(ctx context.Context, r row, e entry, connect string) (res result, err error) {
	l := e.load
	l.Seconds = m.options.chunk.Seconds() * max(r.stretch, 1)
	l.Keep = r.server == nullServer
	ctx, cancel := context.WithTimeout(ctx, patience+l.duration())
	defer cancel()
	t, flags := m.teams, []string(nil)
	if r.fresh {
		t, flags = make(teams), smallHeap
		defer func() { err = errors.Join(err, t.close()) }()
	}
	c, err := t.connected(ctx, place{e.library, r.cores(e)}, connect, flags...)
	if err != nil {
		return res, err
	}
	res, err = c.run(ctx, l)
	if err == nil && (res.Errors > 0 || res.Ops == 0) {
		err = fmt.Errorf("%s: %d operations, %d errors, the first: %s", e.name, res.Ops, res.Errors, res.FirstError)
	}
	return res, err
}
