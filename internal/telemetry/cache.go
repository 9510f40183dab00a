package telemetry

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/metric"
)

// Cache records what a cache does.
type Cache struct {
	r                         *resource
	created, changed, deleted measurement
}

// cacheInstruments are the metrics of caches.
type cacheInstruments struct {
	entries metric.Int64UpDownCounter
	events  metric.Int64Counter
	reloads metric.Int64Counter
	lag     metric.Float64Histogram
}

func newCacheInstruments(d *declarer) cacheInstruments {
	return cacheInstruments{
		entries: d.upDown("curator.cache.entries", "{node}", "Nodes in caches."),
		events:  d.counter("curator.cache.events", "{event}", "Changes of nodes that caches have seen."),
		reloads: d.counter("curator.cache.reloads", "{reload}", "Times that caches compared all their nodes."),
		lag: d.histogram("curator.cache.lag",
			"Time from the change of a node, by the server's clock, to the call of the listeners, by ours.", ageBuckets),
	}
}

// NewCache returns the telemetry of a cache. recipe is its kind. name is what the user calls it, or "".
func (t *Telemetry) NewCache(recipe, name, path string) *Cache {
	r := t.newResource(recipe, name, path)
	if r == nil {
		return nil
	}
	of := func(typ zk.EventType) measurement {
		fixed := t.base(recipeKey.String(recipe), eventType.String(eventName(typ)))
		if name != "" {
			fixed = append(fixed, resourceName.String(name))
		}
		return newMeasurement(fixed...)
	}
	return &Cache{
		r: r, created: of(zk.EventNodeCreated), changed: of(zk.EventNodeDataChanged), deleted: of(zk.EventNodeDeleted),
	}
}

// meter returns the instruments, or nil if metrics are off.
func (c *Cache) meter() *instruments {
	if c == nil {
		return nil
	}
	return c.r.t.meter()
}

// Entries adds n to the number of nodes in caches.
func (c *Cache) Entries(ctx context.Context, n int) {
	if m := c.meter(); m != nil && n != 0 {
		addUpDown(ctx, m.cache.entries, n, c.r.all)
	}
}

// Created counts a created node.
func (c *Cache) Created(ctx context.Context) {
	if m := c.meter(); m != nil {
		add(ctx, m.cache.events, 1, c.created)
		addUpDown(ctx, m.cache.entries, 1, c.r.all)
	}
}

// Changed counts a node whose data has changed.
func (c *Cache) Changed(ctx context.Context) {
	if m := c.meter(); m != nil {
		add(ctx, m.cache.events, 1, c.changed)
	}
}

// Deleted counts a deleted node.
func (c *Cache) Deleted(ctx context.Context) {
	if m := c.meter(); m != nil {
		add(ctx, m.cache.events, 1, c.deleted)
		addUpDown(ctx, m.cache.entries, -1, c.r.all)
	}
}

// Reloaded counts a comparison of all nodes.
func (c *Cache) Reloaded(ctx context.Context) {
	if m := c.meter(); m != nil {
		add(ctx, m.cache.reloads, 1, c.r.all)
	}
}

// Notified records how long ago a node has changed when its listeners are called. mtime is the time of its Stat.
func (c *Cache) Notified(ctx context.Context, mtime int64) {
	if m := c.meter(); m != nil {
		record(ctx, m.cache.lag, max(time.Since(time.UnixMilli(mtime)).Seconds(), 0), c.r.all)
	}
}
