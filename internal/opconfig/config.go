// Package opconfig has what a client of package framework hands to package builders, which makes its operations.
package opconfig

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/telemetry"
)

// Config has the parts of a client that its operations need. It must not change after hook.NewOperations.
type Config struct {
	Executor *exec.Executor
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
	// DispatchLibrary runs a watcher of the library, which does not wait for the program's callbacks.
	DispatchLibrary func(run func(ctx context.Context))
	// Deliver hands the result of a background operation to its callback, or to the listeners of the client if there
	// is none. It runs on the dispatcher, or where the callbacks of the library run.
	Deliver func(ctx context.Context, cb callbacks.BackgroundCallback, ev callbacks.Event)
	// GivenUp reports a background operation that was given up. received is set if its callback gets err, too.
	GivenUp func(ctx context.Context, message string, err error, received bool)
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
