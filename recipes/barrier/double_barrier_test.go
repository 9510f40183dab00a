package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/barrier"
)

// In Java: TestDistributedDoubleBarrier.testMultiClient, TestDistributedDoubleBarrier.testBasic.
func TestDoubleBarrierMembersEnterAndLeaveTogether(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, members := range []int{1, 2, 5} {
		var came, went atomic.Int32
		var all sync.WaitGroup
		for range members {
			d := barrier.NewDistributedDoubleBarrier(s.client(), barrierPath, members)
			all.Go(func() {
				came.Add(1)
				if err := d.Enter(s.ctx); err != nil || int(came.Load()) != members {
					t.Errorf("in when %d of %d have come, error %v", came.Load(), members, err)
				}
				went.Add(1)
				if err := d.Leave(s.ctx); err != nil || int(went.Load()) != members {
					t.Errorf("out when %d of %d have left, error %v", went.Load(), members, err)
				}
			})
		}
		all.Wait()
		s.awaitNothing()
	}
}

// In Java: TestDistributedDoubleBarrier.testOverSubscribed.
func TestDoubleBarrierMoreMembersThanNeeded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const few, many = 3, 5
	var went atomic.Int32
	var members []*barrier.DistributedDoubleBarrier
	for i := range many {
		members = append(members, s.member(s.client(), fmt.Sprint(i), few))
	}
	var entering []*call
	for _, d := range members[many-few:] {
		entering = append(entering, s.later(d.Enter))
	}
	for _, c := range entering {
		c.returns()
	}
	for _, d := range members[:many-few] { // they are late, and lower than all others
		s.must(d.Enter(s.ctx))
	}
	var leaving []*call
	for _, d := range members {
		leaving = append(leaving, s.later(func(ctx context.Context) error {
			went.Add(1)
			err := d.Leave(ctx)
			if n := went.Load(); n != many {
				t.Errorf("out when %d of %d have left", n, many)
			}
			return err
		}))
	}
	for _, c := range leaving {
		c.returns()
	}
	s.awaitNothing()
}

func TestDoubleBarrierNodesAreJavas(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client := s.client(framework.WithDefaultData([]byte("me")))
	d := barrier.NewDistributedDoubleBarrier(client, barrierPath, 1)
	s.must(d.Enter(s.ctx))
	children := s.children()
	if len(children) != 2 || !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(children[0]) ||
		children[1] != "ready" {
		t.Fatalf("children %v", children)
	}
	for name, owner := range map[string]int64{children[0]: client.SessionID(), "ready": 0} {
		data, stat, err := s.raw.Get(s.path(name))
		if err != nil || string(data) != "me" || stat.EphemeralOwner != owner {
			t.Errorf("%s: data %q, owner %#x, error %v", name, data, stat.EphemeralOwner, err)
		}
	}
	for p := s.path(""); p != s.chroot; p = path.Dir(p) {
		if data, _, err := s.raw.Get(p); err != nil || len(data) > 0 {
			t.Errorf("%s: data %q, error %v", p, data, err)
		}
	}
	s.must(d.Leave(s.ctx))
	if children := s.children(); len(children) != 0 {
		t.Errorf("children %v", children)
	}
	s.awaitNothing()
}

func TestDoubleBarrierInNamespace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := barrier.NewDistributedDoubleBarrier(s.client(framework.WithNamespace("barriers")), "/b", 2)
	b := barrier.NewDistributedDoubleBarrier(s.client().UsingNamespace("barriers"), "/b", 2)
	for _, methods := range [][]func(context.Context) error{{a.Enter, b.Enter}, {b.Leave, a.Leave}} {
		first := s.later(methods[0])
		s.must(methods[1](s.ctx))
		first.returns()
	}
	s.awaitNothing()
}

func TestDoubleBarrierEnterTwiceOrLeaveTwiceFails(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	d := s.member(s.client(), "a", 2)
	s.wantErr(d.Leave(s.ctx), barrier.ErrNotEntered)
	entering := s.later(d.Enter)
	s.awaitWatch("ready")
	s.wantErr(d.Leave(s.ctx), barrier.ErrNotEntered)
	s.wantErr(d.Enter(s.ctx), barrier.ErrEntered)
	s.put("b")
	s.put("ready")
	entering.returns()
	s.wantErr(d.Enter(s.ctx), barrier.ErrEntered)
	leaving := s.later(d.Leave)
	s.awaitWatch("b")
	s.wantErr(d.Leave(s.ctx), barrier.ErrNotEntered)
	s.wantErr(d.Enter(s.ctx), barrier.ErrEntered)
	s.take("b")
	leaving.returns()
	s.wantErr(d.Leave(s.ctx), barrier.ErrNotEntered)
	s.awaitNothing()
}

func TestDoubleBarrierInvalidArgumentsFail(t *testing.T) {
	for _, tt := range []struct {
		path    string
		members int
		want    string
	}{
		{"b", 1, "invalid path"},
		{"/b", 0, "0 members"},
		{"/b", -1, "-1 members"},
	} {
		d := barrier.NewDistributedDoubleBarrier(nil, tt.path, tt.members)
		for name, method := range map[string]func(context.Context) error{"enter": d.Enter, "leave": d.Leave} {
			if err := method(testenv.Context(t)); err == nil || !strings.Contains(err.Error(), tt.want) ||
				tt.members > 0 && !errors.Is(err, zk.ErrInvalidPath) {
				t.Errorf("%s of %d at %s: %v", name, tt.members, tt.path, err)
			}
		}
	}
}

func TestDoubleBarrierClientClosedFails(t *testing.T) {
	t.Parallel()
	for _, waiting := range []string{"to enter", "to leave"} {
		t.Run(waiting, func(t *testing.T) {
			s := newBarrier(t)
			client := s.client()
			d := s.member(client, "a", 2)
			c := s.later(d.Enter)
			s.awaitWatch("ready")
			if waiting == "to leave" {
				s.put("b")
				s.put("ready")
				c.returns()
				c = s.later(d.Leave)
				s.awaitWatch("b")
			}
			s.must(client.Close())
			c.fails(framework.ErrClosed)
			s.wantErr(d.Enter(s.ctx), framework.ErrClosed)
		})
	}
}
