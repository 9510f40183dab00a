// Package opconfig has what a client of package framework hands to package builders, which makes its operations.
package opconfig

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/telemetry"
)

// New returns the operations of a client in the whole tree: a value with a method for each operation, named like that
// of framework.Client, which returns its builder. Package builders sets it.
var New func(c *Config) any

// Config has the parts of a client that its operations need. It must not be changed after New.
type Config struct {
	Executor *exec.Executor
	// Refusal is the error of all operations, nil if they are done.
	Refusal error
	// DefaultData returns what is written for data nil.
	DefaultData func() []byte
	ACL         ACLProvider
	Compression CompressionProvider
	// CompressAll compresses and decompresses unless a builder says otherwise.
	CompressAll bool
	// MaxBuffer is the size in bytes of the largest request that the server reads.
	MaxBuffer int
	// NoContainers makes persistent parents where containers are asked for.
	NoContainers bool
	// Chroot returns the chroot of the connect string, "" without one.
	Chroot func() string
	// Dispatch runs a watcher on the dispatcher.
	Dispatch func(run func(ctx context.Context))
	// Deliver hands the result of a background operation to its callback, or to the listeners of the client if there
	// is none. It runs on the dispatcher.
	Deliver func(ctx context.Context, cb callbacks.BackgroundCallback, ev callbacks.Event)
	// Unhandled reports a background operation that was given up.
	Unhandled func(ctx context.Context, message string, err error)
	// DefaultWatcher is that of the steps called Watched.
	DefaultWatcher *callbacks.Watcher
	// Telemetry records watches; the executor records operations with it.
	Telemetry *telemetry.Telemetry
}

// ACLProvider is a builders.ACLProvider.
type ACLProvider interface {
	DefaultACL() []zk.ACL
	ACLForPath(path string) []zk.ACL
}

// CompressionProvider is a builders.CompressionProvider.
type CompressionProvider interface {
	Compress(path string, data []byte) ([]byte, error)
	Decompress(path string, compressed []byte) ([]byte, error)
}
