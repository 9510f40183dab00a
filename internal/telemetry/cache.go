package telemetry

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/metric"
)

// Cache records what a cache does.
type Cache struct{ r resource }

// cacheInstruments are the metrics of caches.
type cacheInstruments struct {
	entries    metric.Int64UpDownCounter
	unreadable metric.Int64UpDownCounter
	events     metric.Int64Counter
	reloads    metric.Int64Counter
	lag        metric.Float64Histogram
}

func newCacheInstruments(d *declarer) cacheInstruments {
	return cacheInstruments{
		entries:    d.upDown("curator.cache.entries", "{node}", "Nodes in caches."),
		unreadable: d.upDown("curator.cache.unreadable", "{node}", "Nodes that caches cannot read."),
		events:     d.counter("curator.cache.events", "{event}", "Changes of nodes that caches have seen."),
		reloads:    d.counter("curator.cache.reloads", "{reload}", "Times that caches compared all their nodes."),
		lag: d.histogram("curator.cache.lag",
			"Time from the change of a node, by the server's clock, to the call of the listeners, by ours.", ageBuckets),
	}
}

// NewCache returns the telemetry of a cache. recipe is its kind. name is what the user calls it, or "".
func (t *Telemetry) NewCache(recipe, name, path string) Cache {
	return Cache{resource{t: t, recipe: recipe, name: name, path: path}}
}

// addEvent counts a change of a node.
func (c *Cache) addEvent(ctx context.Context, m *instruments, typ zk.EventType) {
	c.r.t.add(ctx, m.cache.events, 1, c.r.measures().events.get(eventName(typ)))
}

// Entries adds n to the number of nodes in caches.
func (c *Cache) Entries(ctx context.Context, n int) {
	if m := c.r.t.meter(); m != nil && n != 0 {
		c.r.t.addUpDown(ctx, m.cache.entries, n, c.r.measures().all)
	}
}

// Unreadable adds n to the number of nodes that caches cannot read.
func (c *Cache) Unreadable(ctx context.Context, n int) {
	if m := c.r.t.meter(); m != nil && n != 0 {
		c.r.t.addUpDown(ctx, m.cache.unreadable, n, c.r.measures().all)
	}
}

// Created counts a created node.
func (c *Cache) Created(ctx context.Context) {
	if m := c.r.t.meter(); m != nil {
		c.addEvent(ctx, m, zk.EventNodeCreated)
		c.r.t.addUpDown(ctx, m.cache.entries, 1, c.r.measures().all)
	}
}

// Changed counts a node whose data has changed.
func (c *Cache) Changed(ctx context.Context) {
	if m := c.r.t.meter(); m != nil {
		c.addEvent(ctx, m, zk.EventNodeDataChanged)
	}
}

// Deleted counts a deleted node.
func (c *Cache) Deleted(ctx context.Context) {
	if m := c.r.t.meter(); m != nil {
		c.addEvent(ctx, m, zk.EventNodeDeleted)
		c.r.t.addUpDown(ctx, m.cache.entries, -1, c.r.measures().all)
	}
}

// Reloaded counts a comparison of all nodes.
func (c *Cache) Reloaded(ctx context.Context) {
	if m := c.r.t.meter(); m != nil {
		c.r.t.add(ctx, m.cache.reloads, 1, c.r.measures().all)
	}
}

// Notified records how long ago a node has changed when its listeners are called. mtime is the time of its Stat.
func (c *Cache) Notified(ctx context.Context, mtime int64) {
	if m := c.r.t.meter(); m != nil {
		c.r.t.record(ctx, m.cache.lag, max(time.Since(time.UnixMilli(mtime)).Seconds(), 0), c.r.measures().all)
	}
}
