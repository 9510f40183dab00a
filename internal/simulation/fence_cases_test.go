package simulation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

// writeCase is a resource with claims, whose writes are judged.
type writeCase struct {
	*testing.T
	world    *world
	resource *resource
}

// claim returns a claim with a node and a token.
func (x *writeCase) claim(name string, token int64, shared bool) *claim {
	x.Helper()
	c := &claim{
		resource: x.resource, process: &process{world: x.world}, token: token, shared: shared, path: "/r/" + name,
		context: context.Background(),
	}
	if err := createNode(x.world, c.path); err != nil {
		x.Fatal(err)
	}
	return c
}

// write writes on the servers, without a fence, and has the judge see it.
func (x *writeCase) write(c *claim) (id, zxid int64) {
	x.Helper()
	id, data := x.world.judge.writes(c)
	stat, err := x.world.operator.SetData().ForPath(x.Context(), x.resource.data, data)
	if err != nil {
		x.Fatal(err)
	}
	return id, stat.Mzxid
}

func (x *writeCase) observe() {
	x.world.judge.mu.Lock()
	defer x.world.judge.mu.Unlock()
	x.world.judge.judgeData(x.resource)
}

func (x *writeCase) delete(c *claim) {
	x.Helper()
	if err := x.world.delete(c.path); err != nil {
		x.Fatal(err)
	}
}

func TestJudgeOfFencedWrites(t *testing.T) {
	refused := errors.Join(errors.New("setData"), locks.ErrLockLost)
	uncertain := errors.Join(framework.ErrUncertain, locks.ErrLockLost)
	for name, tt := range map[string]struct {
		run  func(x *writeCase)
		want string
	}{
		"while the node exists": {run: func(x *writeCase) {
			a := x.claim("a", 1, false)
			id, zxid := x.write(a)
			x.observe()
			x.world.judge.wrote(x.resource, id, zxid, nil)
		}},
		"before the node was deleted": {run: func(x *writeCase) {
			a := x.claim("a", 1, false)
			x.write(a)
			x.delete(a)
			x.observe()
		}},
		"after the node was deleted": {want: "written without a node", run: func(x *writeCase) {
			a := x.claim("a", 1, false)
			x.delete(a)
			x.write(a)
			x.observe()
		}},
		"after a later holder, as the judge sees": {want: "written in the wrong order", run: func(x *writeCase) {
			a, b := x.claim("a", 1, false), x.claim("b", 2, false)
			x.write(b)
			x.observe()
			x.write(a)
			x.observe()
		}},
		"after a later holder, as the holders say": {want: "written in the wrong order", run: func(x *writeCase) {
			a, b := x.claim("a", 1, false), x.claim("b", 2, false)
			first, before := x.write(b)
			second, after := x.write(a)
			x.world.judge.wrote(x.resource, second, after, nil)
			x.world.judge.wrote(x.resource, first, before, nil)
		}},
		"a writer after a later reader": {want: "written in the wrong order", run: func(x *writeCase) {
			a, b := x.claim("a", 1, false), x.claim("b", 2, true)
			x.write(b)
			x.observe()
			x.write(a)
			x.observe()
		}},
		"readers in any order": {run: func(x *writeCase) {
			a, b := x.claim("a", 1, true), x.claim("b", 2, true)
			x.write(b)
			x.observe()
			x.write(a)
			x.observe()
		}},
		"one holder after another": {run: func(x *writeCase) {
			a, b := x.claim("a", 1, false), x.claim("b", 2, false)
			first, before := x.write(a)
			x.observe()
			x.delete(a)
			x.write(b)
			x.observe()
			x.world.judge.wrote(x.resource, first, before, nil)
		}},
		"refused": {run: func(x *writeCase) {
			id, _ := x.world.judge.writes(x.claim("a", 1, false))
			x.world.judge.wrote(x.resource, id, 0, refused)
			x.observe()
		}},
		"refused, and written before": {want: "was refused, and took effect", run: func(x *writeCase) {
			id, _ := x.write(x.claim("a", 1, false))
			x.observe()
			x.world.judge.wrote(x.resource, id, 0, refused)
		}},
		"refused, and written later": {want: "was refused, and took effect", run: func(x *writeCase) {
			id, _ := x.write(x.claim("a", 1, false))
			x.world.judge.wrote(x.resource, id, 0, refused)
			x.observe()
		}},
		"uncertain, and written": {run: func(x *writeCase) {
			id, _ := x.write(x.claim("a", 1, false))
			x.observe()
			x.world.judge.wrote(x.resource, id, 0, uncertain)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				x := &writeCase{T: t, world: w, resource: newResource("/r")}
				w.judge.resources = []*resource{x.resource}
				w.createData()
				tt.run(x)
				checkViolation(t, w, tt.want)
			})
		})
	}
}
