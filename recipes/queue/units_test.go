package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// Java's arguments are milliseconds: as they stand they are nanoseconds here.
func TestQueueRefusesMillisecondsWithoutAUnit(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	_, build := queue.NewBuilder[string](client, nil, codec.Text{}, queuePath).FinalFlushTime(5000).BuildQueue()
	allocate := func(string) (*fakeShard, error) { return &fakeShard{}, nil }
	shards := queue.NewQueueSharder(client, allocate, shardsPath, leading(true), queue.WithThresholdCheck(30_000))
	for want, err := range map[string]error{
		"queue: a final flush of 5µs is below a millisecond": build,
		"queue: a check every 30µs is below a millisecond":   shards.Start(),
		"did you mean 5000*time.Millisecond?":                build,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to say %q", err, want)
		}
	}
	must(t, shards.Close())
	for _, d := range []time.Duration{0, time.Millisecond} {
		built(queue.NewBuilder[string](client, nil, codec.Text{}, queuePath).FinalFlushTime(d).BuildQueue())
	}
}
