package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/telemetry"
)

// maxDepthReads is how many items are read for the age of the first that is still there.
const maxDepthReads = 3

// depth reads how much is in the queue. It reports false without a connection.
func (q *queue[T]) depth(ctx context.Context) (telemetry.Depth, bool) {
	flight := builders.Pipelined(telemetry.Untraced(ctx))
	children, err := q.client.GetChildren().ForPath(flight, q.path)
	if err != nil {
		return telemetry.Depth{}, errors.Is(err, zk.ErrNoNode)
	}
	var names []nodeName
	for _, child := range children {
		if n, found := q.kind.parse(child); found {
			names = append(names, n)
		}
	}
	d := telemetry.Depth{Nodes: len(names)}
	if len(names) == 0 {
		return d, true
	}
	if q.kind.delayed {
		d.Age = max(time.Since(slices.MinFunc(names, byDue).due()), 0)
		return d, true
	}
	slices.SortFunc(names, byNumber)
	for _, n := range names[:min(len(names), maxDepthReads)] {
		var stat zk.Stat
		data, err := q.client.GetData().StoringStatIn(&stat).ForPath(flight, q.node(n))
		if err != nil {
			continue
		}
		_, trailer, _ := decodeItems(data)
		h, _ := historyOf(trailer)
		d.Age = max(time.Since(h.firstPut(time.UnixMilli(stat.Ctime))), 0)
		return d, true
	}
	return d, true // they were taken meanwhile: the queue is not stuck
}
