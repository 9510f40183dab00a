package cache_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/locks"
)

// compression fails for the path of one node, as long as fails is set.
type compression struct {
	bad   string
	fails atomic.Pointer[func() error]
}

func (*compression) Compress(_ string, data []byte) ([]byte, error) { return data, nil }

func (c *compression) Decompress(path string, data []byte) ([]byte, error) {
	if fail := c.fails.Load(); fail != nil && strings.HasSuffix(path, c.bad) {
		if err := (*fail)(); err != nil {
			return nil, err
		}
	}
	return []byte("plain " + string(data)), nil
}

// A compression that panics, ends its goroutine or fails for a node holds up that node, one that blocks its cache, and
// none of them anything else of the client.
func TestCacheCompressionFailsForOneNode(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"panics":             func() error { panic("on purpose") },
		"fails":              func() error { return errors.New("on purpose") },
		"ends its goroutine": func() error { runtime.Goexit(); return nil },
		"blocks":             nil,
	} {
		for _, oneShot := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, one-shot %t", name, oneShot), func(t *testing.T) {
				t.Parallel()
				withScene(t, oneShot, func(s *scene) { s.compressionFails(fail) })
			})
		}
	}
}

func (s *scene) compressionFails(fail func() error) {
	called, blocks := make(chan struct{}, 100), make(chan struct{})
	fails := func() error {
		called <- struct{}{}
		if fail != nil {
			return fail()
		}
		<-blocks
		return nil
	}
	c := &compression{bad: "/bad"}
	c.fails.Store(&fails)
	s.client = s.newClient(s.place, framework.WithCompressionProvider(c))
	s.set(root, root+"/bad=1", root+"/good=1")
	w := s.newCache(cache.WithCompressedData())
	s.begin(w)
	<-called
	plain := s.cacheOf(cache.NewCuratorCache(s.client, root))
	s.begin(plain)
	s.must(plain.Ready(s.ctx))
	hold, err := locks.NewInterProcessMutex(s.client, "/lock").Acquire(s.ctx)
	s.must(err)
	s.must(hold.Release(s.ctx))
	close(blocks)
	s.must(w.Ready(s.ctx))
	if node, ok := w.Get(root + "/good"); !ok || string(node.Data) != "plain 1" {
		s.Errorf("the other node is %+v", node)
	}
	if node, ok := w.Get(root + "/bad"); ok == (fail != nil) || (w.Err(root+"/bad") != nil) == ok {
		s.Errorf("the bad node is %+v, its error is %v", node, w.Err(root+"/bad"))
	}
	c.fails.Store(nil)
	s.must(w.Sync(s.ctx)) // which reads again what failed
	if node, ok := w.Get(root + "/bad"); !ok || string(node.Data) != "plain 1" {
		s.Errorf("in the end the bad node is %+v, its error is %v", node, w.Err(root+"/bad"))
	}
}
