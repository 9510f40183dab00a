package callbacks

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/hook"
)

func init() { //nolint:gochecknoinits // for recipes: the public API does not show it
	hook.InPlaceWatcher = func(fn func(ev zk.Event)) any { return &Watcher{inPlace: fn} }
}
