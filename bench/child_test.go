package main

import (
	"testing"

	"github.com/gocurator/curator/bench/nullserver"
	"github.com/gocurator/curator/internal/testenv"
)

// TestProcesses uses both kinds of processes that the program starts.
func TestProcesses(t *testing.T) {
	ctx := testenv.Context(t)
	srv, err := startNullServer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	atEnd(t, srv.Close)
	all := make(teams)
	atEnd(t, all.close)
	for _, name := range []string{curator, plain} {
		c, err := all.connected(ctx, place{name, contenderCores}, srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r, err := c.run(ctx, short(getDataSync))
			if err != nil || r.Ops == 0 || r.Allocs == 0 {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		if _, err := c.run(ctx, load{Case: "nonsense"}); err == nil {
			t.Errorf("%s did nonsense", name)
		}
	}
	if err := all.leave(ctx); err != nil {
		t.Error(err)
	}
	for _, c := range all {
		if _, err := c.run(ctx, short(getDataSync)); err == nil {
			t.Error("a contender worked that had left")
		}
	}
}

func TestChildRefuses(t *testing.T) {
	srv, err := nullserver.New()
	if err != nil {
		t.Fatal(err)
	}
	atEnd(t, srv.Close)
	if err := run(testenv.Context(t), []string{asChild, "nobody"}, nil, nil); err == nil {
		t.Error("a library was measured that does not exist")
	}
}
