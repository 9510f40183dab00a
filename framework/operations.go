package framework

import (
	"context"

	"github.com/gocurator/curator/builders"
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
	MultiRead() builders.MultiRead
	GetACL() builders.GetACL
	SetACL() builders.SetACL
	Sync() builders.Sync
	Transaction() builders.Transaction
	TransactionOp() builders.TransactionOp
	Watches() builders.Watches
	GetConfig() builders.GetConfig
	Reconfig() builders.Reconfig

	Namespace() string
	UsingNamespace(ns string) (operations any)
	Fenced(tenure context.Context, lost error, nodes []string) (operations any)
	WatcherRemoving() (operations any)
	// These two are for what WatcherRemoving returns.
	RemoveWatchers(ctx context.Context)
	WatcherCount() int
}

// newOperations returns those of the client without a namespace.
func newOperations(k *core) operations {
	return opconfig.New(&opconfig.Config{
		Executor:     k.executor,
		Refusal:      k.cfg.refusal,
		DefaultData:  k.cfg.defaultData,
		ACL:          k.cfg.acl,
		Compression:  k.cfg.compression,
		CompressAll:  k.cfg.compressAll,
		MaxBuffer:    k.cfg.maxBuffer,
		NoContainers: k.cfg.noContainers,
		Chroot:       k.connection.chroot,
		Dispatch:     k.dispatchWatcher,
		Deliver:      k.deliver,
		Unhandled: func(ctx context.Context, message string, err error) {
			k.reportUnhandled(ctx, inBackground, message, err)
		},
		DefaultWatcher: k.watcher,
		Telemetry:      k.telemetry,
	}).(operations)
}
