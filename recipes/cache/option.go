package cache

import "time"

// Option configures a cache.
type Option interface{ apply(*settings) }

// settings is the result of the options of a cache.
type settings struct {
	maxDepth    int // negative means no limit
	compressed  bool
	keepOnClose bool
	storage     Storage  // nil means nodeStorage
	dataless    bool     // nodeStorage drops the data
	selector    Selector // nil means all nodes
	jitter      time.Duration
	name        string
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithSingleNode caches only the root, without anything below it. In Java: Options.SINGLE_NODE_CACHE.
func WithSingleNode() Option { return WithMaxDepth(0) }

// WithMaxDepth limits the cache to depth levels below its root. With 0 it caches only the root, with 1 also the
// children of the root. A negative depth is no limit, which is the default. In Java: TreeCache.Builder.setMaxDepth.
func WithMaxDepth(depth int) Option {
	return option(func(s *settings) { s.maxDepth = depth })
}

// WithCompressedData decompresses the data of the nodes with the client's CompressionProvider. If the data of a node
// does not decompress, [CuratorCache.Err] returns the reason. In Java: Options.COMPRESSED_DATA.
func WithCompressedData() Option { return option(func(s *settings) { s.compressed = true }) }

// WithoutClearOnClose keeps the nodes in the storage when the cache is closed. In Java:
// Options.DO_NOT_CLEAR_ON_CLOSE.
func WithoutClearOnClose() Option { return option(func(s *settings) { s.keepOnClose = true }) }

// WithStorage sets the storage of the nodes. Do not share a storage between caches. Start empties it. In Java:
// withStorage, whose start compares the nodes in it.
func WithStorage(storage Storage) Option {
	return option(func(s *settings) { s.storage, s.dataless = storage, false })
}

// WithDataNotCached keeps the nodes without their data. New in an event of a listener still has its data; the nodes
// that [CuratorCache.Changes] yields first have none. In Java: CuratorCacheStorage.dataNotCached.
func WithDataNotCached() Option {
	return option(func(s *settings) { s.storage, s.dataless = nil, true })
}

// WithSelector sets the filter of the nodes below the root. In Java: TreeCache.Builder.setSelector.
func WithSelector(selector Selector) Option {
	return option(func(s *settings) { s.selector = selector })
}

// WithName sets the name of the cache in metrics. Use few different names: each is a metric attribute. Not in Java.
func WithName(name string) Option { return option(func(s *settings) { s.name = name }) }

// WithReconnectJitter delays the reads on a new connection by a random duration up to limit, so that many processes
// do not read at once. [CuratorCache.Sync] waits for that delay too. The first load is not delayed. The default is no
// delay. Not in Java.
func WithReconnectJitter(limit time.Duration) Option {
	return option(func(s *settings) { s.jitter = limit })
}

// Selector filters the nodes of a cache below its root. Its methods must be fast, must always return the same result
// for a path, and must not call the cache. They are called on a goroutine of the cache, where a panic ends the program.
// In Java: TreeCacheSelector.
type Selector interface {
	// TraverseChildren reports whether the children of the node at path may be in the cache.
	TraverseChildren(path string) bool
	// AcceptChild reports whether the node at path may be in the cache. It is called only if TraverseChildren of the
	// parent returned true.
	AcceptChild(path string) bool
}

func settingsOf(opts []Option) settings {
	s := settings{maxDepth: -1}
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}
