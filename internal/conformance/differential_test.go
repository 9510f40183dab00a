package conformance_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

var (
	sequences = flag.Int("sequences", 60, "how many random sequences are compared")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first; the others follow")
)

// steps is how long a sequence is.
const steps = 500

func TestMain(m *testing.M) { testenv.Main(m) }

// startReal starts Apache ZooKeeper as the comparison needs it: nothing happens on it by itself.
func startReal(tb testing.TB, more ...curatortest.RealOption) (addr string, r release) {
	tb.Helper()
	testenv.RequireReal(tb)
	server, err := curatortest.NewRealServer(append([]curatortest.RealOption{
		curatortest.WithSystemProperty("znode.container.checkIntervalMs", fmt.Sprint(hour)),
		curatortest.WithSystemProperty("zookeeper.DigestAuthenticationProvider.superDigest", superDigest),
		curatortest.WithConfig("snapCount", "10000000"),
	}, more...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	return server.Addr(), releaseOf(tb, server)
}

// superDigest is the digest of superUser.
const superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="

func startOurs(tb testing.TB, r release, more ...curatortest.ServerOption) string {
	tb.Helper()
	return curatortest.NewServerT(tb, append([]curatortest.ServerOption{
		curatortest.WithVersion(r.version),
		curatortest.WithSuperUser(superUser),
		curatortest.WithSweepInterval(time.Hour),
	}, more...)...).Addr()
}

// TestDifferentialSequences plays the same random requests on both servers.
func TestDifferentialSequences(t *testing.T) {
	theirs, r := startReal(t)
	d := differential{theirs: theirs, ours: startOurs(t, r)}
	for i := range *sequences {
		seed := *firstSeed + uint64(i)
		all := newGenerator(seed).sequence(steps)
		diff, err := d.compare(all)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff == "" {
			continue
		}
		t.Logf("seed %d: the servers differ (-theirs +ours)\n%s", seed, diff)
		least := d.shrink(all)
		diff, _ = d.compare(least)
		lines := make([]string, len(least))
		for j, s := range least {
			lines[j] = s.String()
		}
		t.Fatalf("seed %d: the servers differ after\n%s\n(-theirs +ours)\n%s", seed, strings.Join(lines, "\n"), diff)
	}
}

// differential compares two servers.
type differential struct {
	theirs, ours string
	played       int
}

func (d *differential) compare(steps []step) (diff string, err error) {
	d.played++
	root := fmt.Sprintf("/s%d", d.played)
	type result struct {
		transcript
		err error
	}
	theirs := make(chan result, 1)
	go func() {
		t, err := play(d.theirs, root, steps)
		theirs <- result{t, err}
	}()
	ours, err := play(d.ours, root, steps)
	their := <-theirs
	if err != nil || their.err != nil {
		return "", fmt.Errorf("theirs: %w, ours: %w", their.err, err)
	}
	for i := range clients {
		if slices.Equal(their.received[i], ours.received[i]) {
			continue
		}
		diff += fmt.Sprintf("client %d:\n%s", i, cmp.Diff(their.received[i], ours.received[i]))
	}
	if !slices.Equal(their.tree, ours.tree) {
		diff += "tree:\n" + cmp.Diff(their.tree, ours.tree)
	}
	return diff, nil
}

// shrink leaves out steps for as long as the servers still differ.
func (d *differential) shrink(steps []step) []step {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps); {
			fewer := slices.Concat(steps[:at], steps[at+size:])
			if diff, err := d.compare(fewer); err == nil && diff != "" {
				steps = fewer
			} else {
				at += size
			}
		}
	}
	return steps
}
