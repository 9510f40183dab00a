package simulation_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

var (
	seconds = flag.Int("seconds", 0, "how long to simulate new seeds, in real time; 0 is some seeds, always the same")
	length  = flag.Duration("chaos", chaosLength, "how long each seed has faults, in virtual time")
	queues  = flag.Bool("queues", false, "whether queues, double barriers, counters, values and nodes take part")
)

// seedVariable names the environment variable with the one seed to simulate.
const seedVariable = "CURATOR_SEED"

// someSeeds is the number of seeds by default, from firstSeed on. Every kind of fault occurs in them.
const (
	someSeeds        = 30
	firstSeed uint64 = 1 << 20
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestSimulation simulates one seed after the other on every processor.
func TestSimulation(t *testing.T) {
	if testenv.Real() {
		t.Skip("Apache ZooKeeper is in no bubble")
	}
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(400)) // a world leaves much garbage
	}
	r := newReport()
	defer func() { t.Log(r) }()
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		simulateSeed(t, seed, r)
		return
	}
	began, first := time.Now(), firstSeed
	if *seconds > 0 {
		first = rand.Uint64() >> 20 << 20 // a longer run takes new seeds
	}
	var next atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for !t.Failed() {
					n := next.Add(1) - 1
					if *seconds > 0 && time.Since(began) > time.Duration(*seconds)*time.Second ||
						*seconds == 0 && n >= someSeeds {
						return
					}
					simulateSeed(t, first+uint64(n), r)
				}
			})
		}
	})
	if never := r.never(); len(never) > 0 && r.worlds >= someSeeds {
		t.Errorf("in %d seeds never: %s", r.worlds, strings.Join(never, ", "))
	}
}

// simulateSeed simulates one seed in a bubble.
func simulateSeed(t *testing.T, seed uint64, r *report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		violation := simulate(seed, r, *length)
		if violation != "" {
			t.Errorf("%s=%d\n%s", seedVariable, seed, violation)
		}
	})
}
