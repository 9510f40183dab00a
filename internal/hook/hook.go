// Package hook lists everything that the client, its recipes and the tests of this module use and the public packages
// do not show. The package that owns a hook sets it when it is initialized. A type that this package cannot import,
// because its package imports this one, is an any; the comment names the type.
package hook

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/telemetry"
)

// Package callbacks sets these. A watcher is a *callbacks.Watcher.
var (
	// InPlaceWatcher returns a watcher that calls fn on the goroutine that reads the connection: in the order of the
	// events, and before an answer that came after them is given to anybody. fn must not block.
	InPlaceWatcher func(fn func(ev zk.Event)) (watcher any)
	// Deliver hands ev to a watcher: to its channel at once, to its function through dispatch.
	Deliver func(watcher any, ev zk.Event, dispatch func(run func(ctx context.Context)))
	// MarkOfLibrary marks a watcher that is set or removed through a view from ForLibrary. It stays the same watcher: such
	// a view removes what another view has set.
	MarkOfLibrary func(watcher any)
	// IsOfLibrary reports whether a watcher is marked.
	IsOfLibrary func(watcher any) bool
	// NoteWatchSpan notes the span in which a watcher was set last.
	NoteWatchSpan func(watcher any, span trace.SpanContext)
	// WatchSpan returns the span that NoteWatchSpan has noted last, an invalid one without any.
	WatchSpan func(watcher any) trace.SpanContext
)

// Package builders sets these.
var (
	// NewOperations returns the operations of a client in the whole tree, from an *opconfig.Config that does not change
	// afterwards: a value with a method for each operation, named like that of framework.Client, which returns its
	// builder.
	NewOperations func(config any) (operations any)
	// OutOfFence returns a context whose operations a fenced client sends without its fence. It is for a recipe that
	// clears away nodes of its own: nobody else would, as long as the session lasts.
	OutOfFence func(ctx context.Context) context.Context
	// WithRetries is builders.OutOfFlight for operations that keep the order of their client.
	WithRetries func(ctx context.Context) context.Context
	// IsPipelineLive reports whether the operations of a context from PipelinedNow travel on a connection that is not
	// lost. The states of a client and the session events of its watches may come long after a loss.
	IsPipelineLive func(ctx context.Context) bool
	// JoinFences returns one fence of several, a builders.TransactionOperation of a slice of them. They may be of clients
	// with different chroots.
	JoinFences func(fences any) (fence any)
)

// Package framework sets these. A client is a *framework.Client, an option a framework.Option.
var (
	// Telemetry returns the telemetry of a client, for its recipes.
	Telemetry func(client any) *telemetry.Telemetry
	// TelemetryOption returns an option that changes the configuration of a client's telemetry.
	TelemetryOption func(change func(c *telemetry.Config)) (option any)
	// Decompress returns the data of bytes that were read undecompressed: the same, unless always is true or the client
	// compresses all.
	Decompress func(client any, path string, data []byte, always bool) ([]byte, error)
	// HasChroot reports whether the connect string of a client has a chroot.
	HasChroot func(client any) bool
	// HasProviders reports whether operations of a client call code of the program: an ACLProvider, or a
	// CompressionProvider for all data.
	HasProviders func(client any) bool
	// EnsureNamespace is the first part of every operation of a client in a namespace, which calls its ACLProvider.
	EnsureNamespace func(client any) error
	// FencedBy returns a view of a client, as its Fenced does, with a fence that JoinFences has returned.
	FencedBy func(client any, holding context.Context, fence any) (view any)
	// ForLibrary returns a view of a client for the library itself: a *framework.Client. Its background callbacks, its
	// watchers and the connection state listeners that are added to it never wait for those of the program, and run before
	// what comes after them on the program's side. They must not block, and must not call code of the program.
	ForLibrary func(client any) (view any)
	// Dispatch runs a function of the program behind the background callbacks and watchers of a client, unless the client
	// is closed. what names it in the report of a panic.
	Dispatch func(client any, what string, fn func())
	// Closing returns a context that ends when the client begins to close, with framework.ErrClosed as the cause.
	Closing func(client any) context.Context
	// EndOf returns the error of ctx, which has ended. Without a connection it names the reason for that, too.
	EndOf func(ctx context.Context, client any) error
	// Attached returns what a recipe keeps once for a client and all its views: what create returned at the first call.
	// The client calls stop when it is closed, before its operations end, and waits until done is closed. There is one
	// such value for each client.
	Attached func(client any, create func() (value any, stop func() (done <-chan struct{}))) (value any)
	// PipelinedNow is builders.Pipelined, on the connection that the client has now. It returns the session of that, 0
	// without a connection.
	PipelinedNow func(ctx context.Context, client any) (pipeline context.Context, session int64)
	// AwaitConnection is a client's BlockUntilConnected for a recipe, which goes on after a refusal of the login that
	// passes: it waits until a server accepts it.
	AwaitConnection func(ctx context.Context, client any) error
	// StateListeners returns, for tests, the number of a client's listeners to the connection state.
	StateListeners func(client any) int
	// WallClock returns an option, for tests, that sets the wall clock by which a client notices that its machine was
	// suspended.
	WallClock func(now func() time.Time) (option any)
	// Jitter returns an option, for tests, that sets the random part of the pauses between attempts to connect.
	Jitter func(of func(most time.Duration) time.Duration) (option any)
	// BeforeSession returns an option, for tests, with which Client.Session calls fn before it returns the session. A
	// recipe looks at the session at its grant, so that a test can have something happen right before it.
	BeforeSession func(fn func(client any)) (option any)
)
