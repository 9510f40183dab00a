package cache

import (
	"fmt"
	"iter"
	"testing"
	"time"
)

// large is a storage whose listing says when it ends.
type large struct {
	Storage
	nodes  []*ChildData
	listed func()
}

func (l *large) All() iter.Seq[*ChildData] {
	return func(yield func(*ChildData) bool) {
		for _, n := range l.nodes {
			if !yield(n) {
				return
			}
		}
		l.listed()
	}
}

// While one goroutine sorts a snapshot, another gets the lock as a change of the cache does: a Get that waits behind
// that change would wait for the sort too. A busy machine may run the other one too late, so it has many tries.
func TestSnapshotIsSortedWithoutTheLock(t *testing.T) {
	t.Parallel()
	const nodes, tries = 100_000, 100
	storage := &large{}
	for i := range nodes {
		storage.nodes = append(storage.nodes, &ChildData{Path: fmt.Sprintf("/config/node-%06d", i*7919%nodes)})
	}
	e := &engine{settings: settings{storage: storage}, followers: make(map[*mailbox[Event]]struct{})}
	for name, take := range map[string]func(){
		"All":     func() { e.snapshot() },
		"Changes": func() { e.follow() },
	} {
		t.Run(name, func(t *testing.T) {
			for range tries {
				listed, sorted := make(chan time.Time, 1), make(chan time.Time, 1)
				storage.listed = func() { listed <- time.Now() }
				go func() { take(); sorted <- time.Now() }()
				began := <-listed
				e.mu.Lock()
				locked := time.Now()
				e.mu.Unlock()
				if ended := <-sorted; locked.Sub(began) < ended.Sub(locked) {
					return
				}
			}
			t.Error("the lock is held until the snapshot is sorted")
		})
	}
}
