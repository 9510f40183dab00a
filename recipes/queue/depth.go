package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// maxDepthReads bounds the items that are read to find the age of the first one that still exists.
const maxDepthReads = 3

// depth returns the depth of the queue. It returns false without a connection.
func (q *queue[T]) depth(ctx context.Context) (report.Depth, bool) {
	flight := builders.Pipelined(telemetry.Untraced(ctx))
	children, err := q.paths.Client.GetChildren().ForPath(flight, q.paths.Queue)
	if err != nil {
		return report.Depth{}, errors.Is(err, zk.ErrNoNode) && waitqueue.CheckChroot(flight, q.paths.Client) == nil
	}
	var names []node.Name
	for _, child := range children {
		if n, found := node.ParseName(child); found {
			names = append(names, n)
		}
	}
	d := report.Depth{Nodes: len(names)}
	if len(names) == 0 {
		return d, true
	}
	if q.kind.Delayed {
		d.Age = time.Since(slices.MinFunc(names, node.ByDue).Due()) // negative before that, which counts as 0
		return d, true
	}
	slices.SortFunc(names, node.ByNumber)
	for _, n := range names[:min(len(names), maxDepthReads)] {
		var stat zk.Stat
		data, err := q.paths.Client.GetData().StoringStatIn(&stat).ForPath(flight, q.paths.Item(n))
		if err != nil {
			continue
		}
		_, trailer, _ := node.Decode(data)
		h, _ := node.HistoryOf(trailer)
		d.Age = time.Since(h.FirstPut(time.UnixMilli(stat.Ctime)))
		return d, true
	}
	return d, true // the items were taken meanwhile: the queue is not stuck
}
