package report

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

type cacheInstruments struct {
	entries    instrument.UpDownCounter
	unreadable instrument.UpDownCounter
	events     instrument.Counter
	reloads    instrument.Counter
	lag        instrument.Histogram
}

var cacheKit = instrument.NewKit(func(d *instrument.Declarer) *cacheInstruments {
	return &cacheInstruments{
		entries:    d.UpDownCounter("curator.cache.entries", "{node}", "Nodes in caches."),
		unreadable: d.UpDownCounter("curator.cache.unreadable", "{node}", "Nodes that caches cannot read."),
		events:     d.Counter("curator.cache.events", "{event}", "Changes of nodes that caches have seen."),
		reloads:    d.Counter("curator.cache.reloads", "{reload}", "Times that caches compared all their nodes."),
		lag: d.Histogram("curator.cache.lag",
			"Time from the change of a node, by the server's clock, to the call of the listeners, by ours.", ageBuckets),
	}
})

// Cache records what a cache does.
type Cache struct{ r resource }

// NewCache returns the report of a cache. recipe is its kind. name is the name that the user gives it, or "".
func NewCache(t *telemetry.Telemetry, recipe, name, path string) Cache {
	return Cache{resource{t: t, key: seriesKey{recipe: recipe, name: name}, path: path}}
}

func (c *Cache) instruments() *cacheInstruments { return cacheKit.Of(c.r.scope()) }

// Started begins the counters of the cache with 0, so that a rate over them includes the first event.
func (c *Cache) Started(ctx context.Context) {
	if in := c.instruments(); in != nil {
		in.reloads.Add(ctx, 0, c.r.measures().all)
		for _, typ := range []zk.EventType{zk.EventNodeCreated, zk.EventNodeDataChanged, zk.EventNodeDeleted} {
			in.events.Add(ctx, 0, c.r.measures().events.Get(typ))
		}
	}
}

// Entries adds n to the number of nodes in caches.
func (c *Cache) Entries(ctx context.Context, n int) {
	if in := c.instruments(); in != nil && n != 0 {
		in.entries.Add(ctx, n, c.r.measures().all)
	}
}

// Unreadable adds n to the number of nodes that caches cannot read.
func (c *Cache) Unreadable(ctx context.Context, n int) {
	if in := c.instruments(); in != nil && n != 0 {
		in.unreadable.Add(ctx, n, c.r.measures().all)
	}
}

// Created counts a created node.
func (c *Cache) Created(ctx context.Context) {
	c.event(ctx, zk.EventNodeCreated)
	c.Entries(ctx, 1)
}

// Changed counts a node whose data has changed.
func (c *Cache) Changed(ctx context.Context) { c.event(ctx, zk.EventNodeDataChanged) }

// Deleted counts a deleted node.
func (c *Cache) Deleted(ctx context.Context) {
	c.event(ctx, zk.EventNodeDeleted)
	c.Entries(ctx, -1)
}

// event counts a change of a node.
func (c *Cache) event(ctx context.Context, typ zk.EventType) {
	if in := c.instruments(); in != nil {
		in.events.Add(ctx, 1, c.r.measures().events.Get(typ))
	}
}

// Reloaded counts a comparison of all nodes.
func (c *Cache) Reloaded(ctx context.Context) {
	if in := c.instruments(); in != nil {
		in.reloads.Add(ctx, 1, c.r.measures().all)
	}
}

// Notified records the time from the change of a node to the call of its listeners, which is now. mtime is the time of
// the node's Stat.
func (c *Cache) Notified(ctx context.Context, mtime int64) {
	if in := c.instruments(); in != nil {
		in.lag.Record(ctx, max(time.Since(time.UnixMilli(mtime)).Seconds(), 0), c.r.measures().all)
	}
}
