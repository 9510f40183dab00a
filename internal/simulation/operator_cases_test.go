package simulation_test

import (
	"testing"
)

// An operator deletes a line of waiters, or of holders, at one moment.
func TestOperatorDeletesLineAtOnce(t *testing.T) {
	for name, holds := range map[string]bool{"holders": true, "waiters": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r := newResource("/r")
				r.lines = []line{{"/r", holds, false}}
				for _, node := range []string{"/r/a", "/r/b", "/r/c"} {
					if err := createNode(w, node); err != nil {
						t.Fatal(err)
					}
				}
				c := &claim{resource: r, process: &process{world: w}, path: "/r/a", context: t.Context()}
				w.judge.granted(c)
				leader, err := w.cluster.Leader()
				if err != nil {
					t.Fatal(err)
				}
				before, _ := leader.Node("/r")
				if what := w.deleteLine(w.random("line"), r, r.lines[0]); what == "" {
					t.Fatal("nothing is deleted")
				}
				after, _ := leader.Node("/r")
				if len(after.Children) > 0 || after.Stat.Pzxid != before.Stat.Pzxid+1 {
					t.Errorf("children %q, from transaction %#x to %#x", after.Children, before.Stat.Pzxid, after.Stat.Pzxid)
				}
				if c.lostLock.IsZero() == holds {
					t.Errorf("the claim has lost its lock: %t", !c.lostLock.IsZero())
				}
				w.judge.granted(&claim{
					resource: r, process: c.process, owner: w.owners.Add(1), context: t.Context(), token: 1,
				})
				want := ""
				if !holds {
					want = "two hold it" // waiters hold nothing, so nothing excuses the first
				}
				checkViolation(t, w, want)
			})
		})
	}
}

func TestJudgeOfDeletedLine(t *testing.T) {
	const writer, next, reader, other = "/r/__WRIT__0000000001", "/r/__WRIT__0000000002", "/r/__READ__0000000002",
		"/r/__READ__0000000003"
	const grantedLate, heldEarly = "granted without a turn", "held without a turn"
	for name, tt := range map[string]struct {
		line    []string
		granted string
		before  bool // the grant, before the line is deleted
		want    string
	}{
		"the first, on its way":              {line: []string{next, writer}, granted: writer},
		"the first, before":                  {line: []string{next, writer}, granted: writer, before: true},
		"a writer behind a writer":           {line: []string{next, writer}, granted: next, want: grantedLate},
		"a writer behind a writer, before":   {line: []string{next, writer}, granted: next, before: true, want: heldEarly},
		"a reader behind a writer":           {line: []string{writer, reader}, granted: reader, want: grantedLate},
		"a reader behind a reader":           {line: []string{reader, other}, granted: other},
		"a reader behind a writer, a reader": {line: []string{writer, reader, other}, granted: other, want: grantedLate},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r := newResource("/r")
				for _, node := range tt.line {
					if err := createNode(w, node); err != nil {
						t.Fatal(err)
					}
				}
				grant := func() {
					w.judge.granted(&claim{
						resource: r, process: &process{world: w}, path: tt.granted, shared: isReader(tt.granted),
						context: t.Context(),
					})
				}
				if tt.before {
					grant()
				}
				if what := w.deleteLine(w.random("line"), r, r.lines[0]); what == "" {
					t.Fatal("nothing is deleted")
				}
				if !tt.before {
					grant()
				}
				checkViolation(t, w, tt.want)
			})
		})
	}
}
