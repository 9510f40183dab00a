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

// maxDepthReads bounds the items that are read to find the age of the first one that still exists.
const maxDepthReads = 3

// depth returns the depth of the queue. It returns false without a connection.
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
		d.Age = time.Since(slices.MinFunc(names, byDue).due()) // negative before that, which counts as 0
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
		d.Age = time.Since(h.firstPut(time.UnixMilli(stat.Ctime)))
		return d, true
	}
	return d, true // the items were taken meanwhile: the queue is not stuck
}
