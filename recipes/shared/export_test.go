package shared

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/recipes/cache"
)

// Written does what follows the answer to an own write of a transaction.
func (v *SharedValue) Written(zxid int64, data string) {
	v.note(revision{data: []byte(data), stat: zk.Stat{Mzxid: zxid}})
}

// Followed does what follows a state of the cache.
func (v *SharedValue) Followed(zxid int64, data string) {
	v.follow(&cache.ChildData{Data: []byte(data), Stat: zk.Stat{Mzxid: zxid}})
}

// AtEnd has Close call fn when it has ended the contexts of the value.
func (v *SharedValue) AtEnd(fn func()) {
	end := v.end
	v.end = func(cause error) {
		end(cause)
		fn()
	}
}
