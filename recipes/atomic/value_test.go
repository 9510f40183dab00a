package atomic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/recipes/atomic"
)

func TestValueChanges(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := atomic.NewDistributedAtomicValue(s.client, counterPath, patient)
		want := func(r atomic.Result[[]byte], err error, want atomic.Result[[]byte]) {
			s.Helper()
			r.Stats = atomic.Stats{}
			if diff := cmp.Diff(want, r); diff != "" || err != nil {
				s.Errorf("%v, result (-want +got):\n%s", err, diff)
			}
		}
		if data, err := v.Get(s.ctx); data != nil || err != nil {
			s.Errorf("got %q, %v", data, err)
		}
		r, err := v.CompareAndSet(s.ctx, nil, []byte("x")) // as in Java
		want(r, err, atomic.Result[[]byte]{})
		for _, first := range []bool{true, false} {
			if made, err := v.Initialize(s.ctx, nil); made != first || err != nil {
				s.Errorf("initialized %t, %v", made, err)
			}
		}
		s.wantNode(nil)
		r, err = v.CompareAndSet(s.ctx, nil, []byte("a"))
		want(r, err, atomic.Result[[]byte]{Succeeded: true, Pre: []byte{}, Post: []byte("a")})
		r, err = v.CompareAndSet(s.ctx, []byte("b"), []byte("c"))
		want(r, err, atomic.Result[[]byte]{Pre: []byte("a")})
		data := []byte("d")
		r, err = v.TrySet(s.ctx, data)
		data[0] = 'x'
		want(r, err, atomic.Result[[]byte]{Succeeded: true, Pre: []byte("a"), Post: []byte("d")})
		s.must(v.ForceSet(s.ctx, nil))
		s.wantNode(nil)
		s.must(v.Close())
	})
}
