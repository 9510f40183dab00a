package shared_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/shared"
)

type limits struct{ Rate int }

func (s *scene) limits(client *framework.Client) *shared.Value[limits] {
	return shared.NewValue(client, path, codec.JSON[limits]{}, shared.WithName("limits"))
}

func TestValueGetAndSet(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.limits(s.client)
		_, _, err := v.Get(s.ctx)
		s.wantError(err, zk.ErrNoNode)
		for rate := range 2 { // the first creates the node
			stat, err := v.Set(s.ctx, limits{rate})
			s.must(err)
			got, of, err := v.Get(s.ctx)
			if err != nil || got.Rate != rate || *of != *stat || int(of.Version) != rate {
				t.Errorf("%+v, %+v, %v after %+v", got, of, err, stat)
			}
		}
		if data, _ := s.stored(); data != `{"Rate":1}` {
			t.Errorf("the node has %s", data)
		}
		s.write("no JSON")
		if _, stat, err := v.Get(s.ctx); err == nil || stat == nil || stat.Version != 2 {
			t.Errorf("%+v, %v", stat, err)
		}
		_, err = shared.NewValue(s.client, "no path", codec.Text{}).Set(s.ctx, "")
		s.wantError(err, zk.ErrInvalidPath)
	})
}

func TestValueModify(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.limits(s.client)
		double := func(_ context.Context, l limits) (limits, error) { return limits{2*l.Rate + 1}, nil }
		for _, want := range []int{1, 3} { // the first creates the node
			if got, err := v.Modify(s.ctx, double); err != nil || got.Rate != want {
				t.Errorf("%+v, %v", got, err)
			}
		}
		calls := 0
		got, err := v.Modify(s.ctx, func(ctx context.Context, l limits) (limits, error) {
			if calls++; calls == 1 {
				s.write(`{"Rate":10}`) // another client is faster
			}
			return double(ctx, l)
		})
		if err != nil || got.Rate != 21 || calls != 2 {
			t.Errorf("%+v, %v after %d calls", got, err, calls)
		}
		for _, during := range []func(){s.remove, func() { s.write(`{"Rate":1}`) }} { // the second finds no node
			calls = 0
			got, err = v.Modify(s.ctx, func(ctx context.Context, l limits) (limits, error) {
				if calls++; calls == 1 {
					during()
				}
				return double(ctx, l)
			})
			if err != nil || calls != 2 {
				t.Errorf("%+v, %v after %d calls", got, err, calls)
			}
			s.remove()
		}
		reason := errors.New("on purpose")
		_, err = v.Modify(s.ctx, func(context.Context, limits) (limits, error) { return limits{}, reason })
		s.wantError(err, reason)
		_, err = v.Modify(s.ctx, func(context.Context, limits) (limits, error) { panic("on purpose") })
		if err == nil || !strings.Contains(err.Error(), "on purpose") {
			t.Errorf("a panic is %v", err)
		}
		s.write("no JSON")
		if _, err := v.Modify(s.ctx, double); err == nil {
			t.Error("what does not decode is modified")
		}
	})
}

func TestValueWatch(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := s.limits(s.client)
		s.write(`{"Rate":1}`)
		steps := []struct {
			want int
			err  error
			next func()
		}{
			{want: 1, next: func() { s.write(`{"Rate":2}`) }},
			{want: 2, next: s.remove},
			{err: zk.ErrNoNode, next: func() { s.write(`{"Rate":3}`) }},
			{want: 3, next: func() {
				again := s.awaitState(framework.Reconnected)
				restore := s.cutOff()
				s.write(`{"Rate":4}`)
				restore()
				again()
			}},
			{want: 4, next: func() {}},
		}
		n := 0
		for value, err := range v.Watch(s.ctx) {
			step := steps[n]
			if value.Rate != step.want || !errors.Is(err, step.err) {
				t.Errorf("%d: %+v, %v", n, value, err)
			}
			step.next()
			if n++; n == len(steps) {
				break
			}
		}
		s.write("no JSON")
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		n = 0
		for value, err := range v.Watch(ctx) { // the first comes at once, with its error
			if n == 0 && err == nil || n == 1 && value.Rate != 5 {
				t.Errorf("%d: %+v, %v", n, value, err)
			}
			if n++; n == 1 {
				s.write(`{"Rate":5}`)
			} else {
				cancel()
			}
		}
		if n != 2 {
			t.Errorf("%d values", n)
		}
		for _, err := range shared.NewValue(s.client, "no path", codec.Text{}).Watch(s.ctx) {
			s.wantError(err, zk.ErrInvalidPath)
		}
	})
}

func TestValueWatchEndsWithClient(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		client := s.newClient(s.place)
		s.write(`{"Rate":1}`)
		for _, want := range []int{2, 1} { // the second begins on the closed client
			n := 0
			var last error
			for _, err := range s.limits(client).Watch(s.ctx) {
				if n++; n == 1 {
					s.must(client.Close())
				}
				last = err
			}
			if n != want || !errors.Is(last, framework.ErrClosed) {
				t.Errorf("%d values, and at last %v", n, last)
			}
		}
	})
}

func TestValueWatchOfNodeThatIsMissingOrUnreadable(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		for _, err := range s.limits(s.client).Watch(s.ctx) {
			if err == nil {
				break
			}
			s.wantError(err, zk.ErrNoNode)
			s.write(`{"Rate":1}`)
		}
		refusal := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		for value, err := range s.limits(s.client).Watch(s.ctx) {
			if err == nil {
				if value.Rate != 1 {
					t.Errorf("%+v", value)
				}
				break
			}
			s.wantError(err, zk.ErrNoAuth)
			refusal.Remove()
		}
	})
}

func TestValueBadPath(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		v := shared.NewValue(s.client, "limits", codec.Raw{})
		_, _, getErr := v.Get(s.ctx)
		_, setErr := v.Set(s.ctx, nil)
		_, modifyErr := v.Modify(s.ctx, func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
		_, opErr := v.Op(nil, -1)
		var watchErr error
		for _, watchErr = range v.Watch(s.ctx) { // it yields once
		}
		for what, err := range map[string]error{
			"get": getErr, "set": setErr, "modify": modifyErr, "op": opErr, "watch": watchErr,
		} {
			s.wantError(err, zk.ErrInvalidPath)
			if err != nil && strings.Contains(err.Error(), "cache: ") {
				t.Errorf("%s: %q has two prefixes", what, err)
			}
		}
	})
}

func TestValueWritesWhileLockIsHeld(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.write(`{"Rate":1}`)
		hold, err := locks.NewInterProcessMutex(s.client, "/lock").Acquire(s.ctx)
		s.must(err)
		v := s.limits(hold.Client())
		_, err = v.Modify(s.ctx, func(_ context.Context, l limits) (limits, error) { return limits{l.Rate + 1}, nil })
		s.must(err)
		op, err := v.Op(limits{3}, 1)
		s.must(err)
		_, err = hold.Transaction(s.ctx, op)
		s.must(err)
		s.must(s.writer.Delete().ForPath(s.ctx, hold.Path()))
		_, err = v.Set(s.ctx, limits{4})
		s.wantError(err, locks.ErrLockLost)
		_, err = v.Modify(s.ctx, func(context.Context, limits) (limits, error) { return limits{4}, nil })
		s.wantError(err, locks.ErrLockLost)
		_, err = s.client.Transaction().ForOperations(s.ctx, op) // of version 1
		s.wantError(err, zk.ErrBadVersion)
		if data, _ := s.stored(); data != `{"Rate":3}` {
			t.Errorf("the node has %s", data)
		}
		if _, err := shared.NewValue(s.client, path, codec.JSON[func()]{}).Op(nil, -1); err == nil {
			t.Error("a func is encoded")
		}
	})
}

// The node of the configuration of an ensemble has the version that the server takes for any.
func TestValueModifyOfVersionThatIsAnyIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // one server gives it another version
		server := curatortest.NewClusterT(t, 2, curatortest.WithoutPort()).Servers()[0]
		client := testclient.Connect(t, server.Addr(), framework.WithDialer(server.DialContext))
		v := shared.NewValue(client, builders.ConfigNode, codec.Raw{})
		_, stat, err := v.Get(t.Context())
		if err != nil || stat.Version != -1 {
			t.Fatalf("stat %+v, %v", stat, err)
		}
		_, err = v.Modify(t.Context(), func(_ context.Context, data []byte) ([]byte, error) { return data, nil })
		if !errors.Is(err, shared.ErrIllegalVersion) {
			t.Errorf("error is %v", err)
		}
		for _, entry := range server.Faults().Trace() {
			if entry.Op == "setData" {
				t.Error("a write was sent")
			}
		}
	})
}
