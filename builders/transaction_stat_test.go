package builders_test

import (
	"testing"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/testenv"
)

// givesStatsOfCreates reports whether the server gives the stat of every node that a transaction creates.
// Those before 3.8.2 give that of a container and of a node with a time to live (ZOOKEEPER-4026).
func givesStatsOfCreates(t *testing.T) bool {
	t.Helper()
	return testenv.VersionOf(t, testenv.Server(t)).AtLeast(testenv.Version{3, 8, 2})
}

// statsOfCreates checks that the creates of a transaction have a stat exactly where the server gives one, and takes it
// out of the results.
func statsOfCreates(t *testing.T, results []callbacks.OperationResult) {
	t.Helper()
	given := givesStatsOfCreates(t)
	for i := range results {
		r := &results[i]
		if r.Type != callbacks.OperationCreate {
			continue
		}
		if (r.Stat != nil) != given {
			t.Errorf("create %s: stat %v", r.ForPath, r.Stat)
		}
		if r.Stat != nil && (r.Stat.Czxid == 0 || r.Stat.Version != 0) {
			t.Errorf("create %s: stat %+v", r.ForPath, *r.Stat)
		}
		r.Stat = nil
	}
}
