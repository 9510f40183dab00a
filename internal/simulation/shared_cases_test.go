package simulation_test

import (
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/shared"
)

// fixedCopy is the copy of a case.
type fixedCopy struct{ now shared.VersionedValue[[]byte] }

func (f *fixedCopy) VersionedValue() shared.VersionedValue[[]byte] { return f.now }

func (f *fixedCopy) Err() error { return nil }

// sharedCase is a shared value that was "a" and is "b" now.
type sharedCase struct {
	*testing.T
	*sharedNode
	c    *sharedCopy
	a, b shared.VersionedValue[[]byte]
}

// write sets the data of the node, and returns it as a copy has it. The judge sees it.
func (c *sharedCase) write(data string) shared.VersionedValue[[]byte] {
	c.Helper()
	defer c.see()
	return c.writeUnseen(data)
}

func (c *sharedCase) writeUnseen(data string) shared.VersionedValue[[]byte] {
	c.Helper()
	stat, err := c.world.operator.SetData().ForPath(c.Context(), c.path, []byte(data))
	if err != nil {
		c.Fatal(err)
	}
	return shared.VersionedValue[[]byte]{Value: []byte(data), Version: stat.Version, Zxid: stat.Mzxid}
}

// makeAnew deletes the node and creates it again. The judge sees it.
func (c *sharedCase) makeAnew(data string) {
	c.Helper()
	if err := c.world.operator.Delete().ForPath(c.Context(), c.path); err != nil {
		c.Fatal(err)
	}
	if _, err := c.world.operator.Create().ForPath(c.Context(), c.path, []byte(data)); err != nil {
		c.Fatal(err)
	}
	c.see()
}

func (c *sharedCase) see() {
	c.Helper()
	leader, err := c.world.cluster.Leader()
	if err != nil {
		c.Fatal(err)
	}
	c.observe(leader)
}

func (c *sharedCase) reads(now shared.VersionedValue[[]byte]) {
	c.c.value.(*fixedCopy).now = now
	c.look(c.c)
}

func TestJudgeOfSharedValue(t *testing.T) {
	for name, tt := range map[string]struct {
		happens func(c *sharedCase)
		want    string
	}{
		"it follows": {happens: func(c *sharedCase) {
			c.reads(c.a)
			c.reads(c.b)
			c.reads(c.write("c"))
		}},
		"it goes back": {func(c *sharedCase) {
			c.reads(c.b)
			c.reads(c.a)
		}, "its copy goes back from \"b\""},
		"it has what the servers never had": {func(c *sharedCase) {
			c.b.Value = []byte("x")
			c.reads(c.b)
		}, "and the servers had \"b\""},
		"it is newer than the servers": {func(c *sharedCase) {
			c.b.Zxid++
			c.reads(c.b)
		}, "newer than the servers' \"b\""},
		"it is set": {happens: func(c *sharedCase) {
			c.write("c")
			c.judgeSet(c.c, true, c.b, "c")
		}},
		"it is not set": {func(c *sharedCase) { c.judgeSet(c.c, true, c.b, "c") }, "the servers never had it"},
		"it is set, and set again before the judge looks": {happens: func(c *sharedCase) {
			c.writeUnseen("c")
			c.write("d")
			c.judgeSet(c.c, true, c.b, "c")
		}},
		"it is set, and deleted before the judge looks": {happens: func(c *sharedCase) {
			c.writeUnseen("c")
			if err := c.world.operator.Delete().ForPath(c.Context(), c.path); err != nil {
				c.Fatal(err)
			}
			c.see()
			c.judgeSet(c.c, true, c.b, "c")
		}},
		"it is not set, and others are": {func(c *sharedCase) {
			c.write("c")
			c.write("d")
			c.judgeSet(c.c, true, c.b, "x")
		}, "the servers never had it"},
		"it is set over another one": {func(c *sharedCase) {
			c.write("c")
			c.judgeSet(c.c, true, c.a, "c")
		}, "has set \"c\" as version 3 behind \"a\", version 1"},
		"it is set in a node that was made anew, with the same version": {happens: func(c *sharedCase) {
			c.makeAnew("d")
			c.write("e")
			c.write("c")
			c.judgeSet(c.c, true, c.a, "c")
		}},
		"it is set in a node that was made anew, with another version": {func(c *sharedCase) {
			c.makeAnew("d")
			c.write("c")
			c.judgeSet(c.c, true, c.a, "c")
		}, "has set \"c\" as version 1 behind \"a\", version 1"},
		"it is set over another one without a condition": {happens: func(c *sharedCase) {
			c.write("c")
			c.judgeSet(c.c, false, c.a, "c")
		}},
		"a refused write had taken effect": {func(c *sharedCase) {
			c.judgeRefused("b", "no")
		}, "\"b\" was written, and the call returned: no"},
		"a refused write takes effect": {func(c *sharedCase) {
			c.judgeRefused("c", "no")
			c.write("c")
		}, "\"c\" is written, and the call has returned: no"},
		"a refused write has no effect": {happens: func(c *sharedCase) { c.judgeRefused("c", "no") }},
		"it is old in a quiet time": {func(c *sharedCase) {
			c.reads(c.a)
			c.open(c.c, true)
			<-time.After(2 * settleLimit)
			c.see()
		}, "has \"a\" at "},
		"it is right in a quiet time": {happens: func(c *sharedCase) {
			c.reads(c.b)
			c.open(c.c, true)
			<-time.After(2 * settleLimit)
			c.see()
		}},
		"it is old for a moment": {happens: func(c *sharedCase) {
			c.reads(c.a)
			c.open(c.c, true)
			<-time.After(2 * settleLimit)
			c.world.disturbed.Store(time.Now().UnixNano())
			c.see()
		}},
		"it never follows": {func(c *sharedCase) {
			c.reads(c.a)
			c.awaitCopy(c.Context(), c.c)
		}, "has \"a\", and the servers have \"b\""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := &sharedCase{T: t, sharedNode: newSharedNode(w)}
				c.c = &sharedCopy{node: c.sharedNode, actor: "p", process: &process{world: w}, value: &fixedCopy{}}
				if _, err := w.operator.Create().WithMode(builders.Persistent).
					ForPath(t.Context(), c.path, []byte("seed")); err != nil {
					t.Fatal(err)
				}
				c.a, c.b = c.write("a"), c.write("b")
				tt.happens(c)
				if tt.want != "" {
					checkViolation(t, w, tt.want)
				} else if w.violation != "" {
					t.Error(w.violation)
				}
			})
		})
	}
}
