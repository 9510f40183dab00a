package chaos

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/gocurator/curator/internal/testenv"
)

// Remains are what clients leave behind: the counts of a server's mntr and wchs, and goroutines of this process.
type Remains struct {
	Nodes, Watches, Connections int
	Goroutines                  int
}

// Server is a server with four letter words.
type Server interface {
	FourLetterWord(ctx context.Context, word string) (string, error)
}

// AwaitRemains waits until the server has no more remains than want, and this process no goroutines of the packages.
func (s *Test) AwaitRemains(ctx context.Context, server Server, want Remains, packages ...string) {
	s.tb.Helper()
	var got Remains
	var stacks []string
	defer func() {
		if s.tb.Failed() {
			watched, _ := server.FourLetterWord(context.WithoutCancel(ctx), "wchp")
			s.Note("there remain %+v, not %+v:\n%s\n%s", got, want, watched, strings.Join(stacks, "\n\n"))
		}
	}()
	testenv.Eventually(s.tb, func() bool {
		var err error
		if got, err = remains(ctx, server); err != nil {
			s.tb.Fatal(err)
		}
		stacks = Running(packages...)
		got.Goroutines = min(len(stacks), want.Goroutines)
		return got == want && len(stacks) <= want.Goroutines
	}, "nothing more remains")
}

var counts = regexp.MustCompile(
	`(zk_watch_count|zk_ephemerals_count|zk_num_alive_connections|Total watches)[:\s]+(\d+)`)

func remains(ctx context.Context, server Server) (r Remains, err error) {
	var text string
	for _, word := range []string{"mntr", "wchs"} {
		answer, err := server.FourLetterWord(ctx, word)
		if err != nil {
			return r, err
		}
		text += answer
	}
	var found []string
	for _, m := range counts.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			return r, err
		}
		found = append(found, m[1])
		switch m[1] {
		case "zk_ephemerals_count":
			r.Nodes = n
		case "zk_num_alive_connections":
			r.Connections = n - 1 // minus our own
		default: // the two are the same, unless something is left by one account
			r.Watches = max(r.Watches, n)
		}
	}
	if slices.Sort(found); len(slices.Compact(found)) != 4 {
		return r, fmt.Errorf("the server counts only %v", found)
	}
	return r, nil
}

// Running returns the stacks of the goroutines that the packages have started, or that run in them. "recipes/..." means
// all packages below it.
func Running(packages ...string) (stacks []string) {
	buf := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if slices.ContainsFunc(packages, func(pkg string) bool {
			if tree, ok := strings.CutSuffix(pkg, "..."); ok {
				return strings.Contains(stack, "/"+tree)
			}
			return strings.Contains(stack, "/"+pkg+".")
		}) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
