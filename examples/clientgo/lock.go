// Package clientgo runs the leader election of Kubernetes' client-go on a node of ZooKeeper. docs/leader.md explains
// when that makes sense. It is a module of its own, so that the library does not need client-go. Copy the code.
package clientgo

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/go-zookeeper/zk"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/gocurator/curator/framework"
)

var _ resourcelock.Interface = (*Lock)(nil)

// Lock keeps the record of an election in a node. It is for one LeaderElector, which calls it from one goroutine.
type Lock struct {
	Client   *framework.Client
	Path, ID string
	version  int32 // of the node at the last Get, Create or Update
}

func (l *Lock) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	var stat zk.Stat
	data, err := l.Client.GetData().StoringStatIn(&stat).ForPath(ctx, l.Path)
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		return nil, nil, l.status(err)
	}
	l.version = stat.Version
	// A renewal must change the raw bytes: the version does, while the times in the record are whole seconds.
	return record, strconv.AppendInt(data, int64(stat.Version), 10), nil
}

func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	data, err := json.Marshal(record)
	if err == nil {
		_, err = l.Client.Create().CreatingParentsIfNeeded().ForPath(ctx, l.Path, data)
	}
	if err == nil {
		l.version = 0
	}
	return err
}

func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	stat, err := l.Client.SetData().WithVersion(l.version).ForPath(ctx, l.Path, data)
	if err == nil {
		l.version = stat.Version
	}
	return l.status(err)
}

func (l *Lock) Identity() string   { return l.ID }
func (l *Lock) Describe() string   { return l.Path }
func (l *Lock) RecordEvent(string) {}

func (l *Lock) status(err error) error {
	nodes := schema.GroupResource{Resource: "znodes"}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return apierrors.NewNotFound(nodes, l.Path)
	case errors.Is(err, zk.ErrBadVersion):
		return apierrors.NewConflict(nodes, l.Path, err)
	}
	return err
}
