package framework

import (
	"context"
	"log/slog"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/opconfig"
)

// operations makes the builders of a client or of one of its views. Package builders has the type.
type operations interface {
	Create() builders.Create
	Delete() builders.Delete
	CheckExists() builders.CheckExists
	GetData() builders.GetData
	SetData() builders.SetData
	GetChildren() builders.GetChildren
	GetEphemerals() builders.GetEphemerals
	GetAllChildrenNumber() builders.GetAllChildrenNumber
	MultiRead() builders.MultiRead
	GetACL() builders.GetACL
	SetACL() builders.SetACL
	Sync() builders.Sync
	Transaction() builders.Transaction
	TransactionOp() builders.TransactionOp
	Watches() builders.Watches
	GetConfig() builders.GetConfig
	Reconfig() builders.Reconfig

	WhoAmI(ctx context.Context) ([]builders.Identity, error)

	Namespace() string
	UsingNamespace(ns string) (operations any)
	Fenced(holding context.Context, lost error, nodes []string) (operations any)
	FencedBy(holding context.Context, fence builders.TransactionOperation) (operations any)
	WatcherRemoving() (operations any)
	ForLibrary() (operations any)
	// RemoveWatchers and WatcherCount are called on the result of WatcherRemoving only.
	EnsureNamespace() error
	RemoveWatchers(ctx context.Context)
	WatcherCount() int
}

// newOperations returns the operations of a client without a namespace.
func newOperations(k *core) operations {
	return hook.NewOperations(&opconfig.Config{
		Executor:     k.executor,
		DefaultData:  k.cfg.defaultData,
		ACL:          k.cfg.acl,
		Compression:  k.cfg.compression,
		CompressAll:  k.cfg.compressAll,
		MaxBuffer:    k.cfg.maxBuffer,
		NoContainers: k.cfg.noContainers,
		Chroot:       k.connection.chroot,
		Dispatch:     k.dispatchWatcher,
		Deliver:      k.deliver,

		DispatchLibrary: k.dispatchLibraryWatcher,
		GivenUp: func(ctx context.Context, message string, err error, received bool) {
			level := slog.LevelError
			if received { // the program has the error too: in an outage these lines would fill the log
				level = slog.LevelDebug
			}
			k.report(ctx, level, inBackground, message, err)
		},
		DefaultWatcher: k.watcher,
		Telemetry:      k.telemetry,
	}).(operations)
}
