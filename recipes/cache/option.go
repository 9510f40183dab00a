package cache

import (
	"math"
	"time"
)

// Option changes a default of a [CuratorCache] or [TreeCache].
type Option interface{ apply(*settings) }

type settings struct {
	maxDepth    int
	compressed  bool
	keepOnClose bool
	storage     Storage // nil for nodeStorage
	dataless    bool    // without the data, of nodeStorage
	selector    Selector
	jitter      time.Duration
	name        string
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithSingleNode caches the node alone. In Java: Options.SINGLE_NODE_CACHE.
func WithSingleNode() Option { return WithMaxDepth(0) }

// WithMaxDepth caches the nodes that are at most so many levels below the node of the cache: 0 is that node alone, 1
// has its children too. The default has no limit, and so has a negative depth.
func WithMaxDepth(depth int) Option {
	return option(func(s *settings) {
		if s.maxDepth = depth; depth < 0 {
			s.maxDepth = math.MaxInt
		}
	})
}

// WithCompressedData decompresses the data of nodes with the client's CompressionProvider. [CuratorCache.Err] has
// the reason for a node whose data does not decompress. In Java: Options.COMPRESSED_DATA.
func WithCompressedData() Option { return option(func(s *settings) { s.compressed = true }) }

// WithoutClearOnClose leaves the nodes in the storage when the cache is closed. In Java: Options.DO_NOT_CLEAR_ON_CLOSE.
func WithoutClearOnClose() Option { return option(func(s *settings) { s.keepOnClose = true }) }

// WithStorage sets where the nodes are kept. A storage serves one cache. In Java: withStorage.
func WithStorage(storage Storage) Option {
	return option(func(s *settings) { s.storage, s.dataless = storage, false })
}

// WithDataNotCached keeps the nodes without their data; events have it. In Java: CuratorCacheStorage.dataNotCached.
func WithDataNotCached() Option {
	return option(func(s *settings) { s.storage, s.dataless = nil, true })
}

// WithSelector sets which nodes the cache has. In Java: TreeCacheSelector.
func WithSelector(selector Selector) Option {
	return option(func(s *settings) { s.selector = selector })
}

// WithName names the cache in metrics. Give few different names. Not in Java.
func WithName(name string) Option { return option(func(s *settings) { s.name = name }) }

// WithReconnectJitter has the cache wait for a random part of limit before it reads again on a new connection, so that
// many processes do not read at once. [CuratorCache.Sync] waits with it. The first load does not wait. Not in Java.
func WithReconnectJitter(limit time.Duration) Option {
	return option(func(s *settings) { s.jitter = limit })
}

// Selector decides which nodes a cache has below its own. The methods must be quick and always answer the same; they
// are called on a goroutine of the cache. In Java: TreeCacheSelector.
type Selector interface {
	// TraverseChildren reports whether the cache has children of the node.
	TraverseChildren(path string) bool
	// AcceptChild reports whether the cache has the node, whose parent it has.
	AcceptChild(path string) bool
}

func settingsOf(opts []Option) settings {
	s := settings{maxDepth: math.MaxInt}
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}
