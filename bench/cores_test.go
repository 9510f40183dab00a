package main

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

func TestCoresOfRows(t *testing.T) {
	plainRow, freshRow := row{}, row{fresh: true}
	for _, c := range []struct {
		row   row
		entry entry
		want  cores
	}{
		{plainRow, entry{}, contenderCores},
		{freshRow, entry{}, allCores},
		{plainRow, entry{cores: allCores}, allCores},
		{freshRow, entry{cores: oneCore}, oneCore},
	} {
		if got := c.row.cores(c.entry); got != c.want {
			t.Errorf("%+v in %+v has %s, want %s", c.entry, c.row, got, c.want)
		}
	}
	one, _ := oneCore.span()
	if first, _ := contenderCores.span(); one != first || oneCore.count() != 1 {
		t.Errorf("one core is %s of %s", oneCore.list(), contenderCores.list())
	}
	if all := runtime.NumCPU(); allCores.count() != all || all > 1 && serverCores.count()+contenderCores.count() != all {
		t.Errorf("%s and %s are not all of %s", serverCores.list(), contenderCores.list(), allCores.list())
	}
}

// TestContenderHasItsCores checks what the system and the runtime of a started contender get.
func TestContenderHasItsCores(t *testing.T) {
	ctx := testenv.Context(t)
	for _, c := range []cores{oneCore, allCores} {
		started, err := startedOn(c, func() (contender, error) { return startContender(ctx, place{curator, c}) })
		if err != nil {
			t.Fatal(err)
		}
		atEnd(t, started.close)
		cmd := started.(*process).cmd
		if procs := "GOMAXPROCS=" + strconv.Itoa(c.count()); !slices.Contains(cmd.Env, procs) {
			t.Errorf("%s without %s", c, procs)
		}
		if _, err := exec.LookPath("taskset"); err != nil || runtime.GOOS != "linux" {
			continue
		}
		allowed := func(pid string) string {
			status, err := os.ReadFile("/proc/" + pid + "/status")
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(status), "Cpus_allowed_list:")
			list, _, _ := strings.Cut(rest, "\n")
			return strings.TrimSpace(list)
		}
		want := allowed("self")
		if from, _ := c.span(); c == oneCore {
			want = strconv.Itoa(from)
		}
		if got := allowed(strconv.Itoa(cmd.Process.Pid)); got != want {
			t.Errorf("%s: on %s, want %s", c, got, want)
		}
	}
}
