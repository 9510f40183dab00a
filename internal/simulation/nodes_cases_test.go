package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/nodes"
)

// keptByNobody is a node of a case. Its Close does nothing.
type keptByNobody struct{ keptNode }

func (keptByNobody) Err() error { return nil }

func (keptByNobody) Close(context.Context) error { return nil }

// desireCase is a desire of the operator's session, which has set its data twice, long ago.
type desireCase struct {
	*testing.T
	*desiredNodes
	k *desire
}

func (c *desireCase) create(mode builders.CreateMode, path, data string) {
	c.Helper()
	if _, err := c.world.operator.Create().CreatingParentsIfNeeded().WithMode(mode).
		ForPath(c.Context(), path, []byte(data)); err != nil {
		c.Fatal(err)
	}
}

func (c *desireCase) look() {
	c.Helper()
	leader, err := c.world.cluster.Leader()
	if err != nil {
		c.Fatal(err)
	}
	c.observe(leader)
}

func TestJudgeOfDesiredNodes(t *testing.T) {
	const ephemeral, path = builders.Ephemeral, "/nodes/a"
	for name, tt := range map[string]struct {
		happens func(c *desireCase)
		want    string
	}{
		"right": {happens: func(c *desireCase) { c.create(ephemeral, path, "a#2") }},
		"right and written": {happens: func(c *desireCase) {
			c.create(ephemeral, path, "a#2")
			c.wrote(c.k, 2)
		}},
		"missing":                {want: "a is not there with data 2"},
		"old data":               {func(c *desireCase) { c.create(ephemeral, path, "a#1") }, "a is not there with data 2"},
		"data of somebody else":  {func(c *desireCase) { c.create(ephemeral, path, "b") }, "a is not there with data 2"},
		"of no session":          {func(c *desireCase) { c.create(builders.Persistent, path, "a#2") }, "a is not there"},
		"missing, just now":      {happens: func(c *desireCase) { c.k.since = time.Now() }},
		"missing during a fault": {happens: func(c *desireCase) { c.world.faults.Add(1) }},
		"missing after a fault":  {happens: func(c *desireCase) { c.world.disturbed.Store(time.Now().UnixNano()) }},
		"missing without a connection": {happens: func(c *desireCase) {
			c.k.process.suspended = time.Now()
		}},
		"missing, of a dead process": {happens: func(c *desireCase) { c.k.process.dead.Store(true) }},
		"missing while it closes":    {happens: func(c *desireCase) { c.k.closing = true }},
		"persistent": {happens: func(c *desireCase) {
			c.k.ephemeral = false
			c.create(builders.Persistent, path, "a#2")
		}},
		"two nodes": {func(c *desireCase) {
			c.create(ephemeral, path, "a#2")
			c.create(ephemeral, path+"2", "a#1")
		}, "a has two nodes"},
		"a second node of another session": {happens: func(c *desireCase) {
			c.create(ephemeral, path, "a#2")
			c.create(builders.Persistent, path+"2", "a#1")
		}},
		"closed": {happens: func(c *desireCase) { c.k.closing, c.k.closed = true, true }},
		"there after Close": {func(c *desireCase) {
			c.k.closing, c.k.closed = true, true
			c.create(ephemeral, path, "a#2")
		}, "a is closed, and its node is there"},
		"an operator's node after Close": {happens: func(c *desireCase) {
			c.k.closing, c.k.closed = true, true
			c.create(builders.Persistent, path, "a#2")
		}},
		"there again after Close": {func(c *desireCase) {
			c.k.closing, c.k.closed = true, true
			c.look()
			c.create(ephemeral, path, "a#2")
		}, "a is closed, and its node is there"},
		"written, and the servers never had it": {func(c *desireCase) {
			c.k.since = time.Now()
			c.create(ephemeral, path, "a#1")
			c.wrote(c.k, 2)
		}, `data 2 is written, and the servers have ["a#1 of session`},
		"written, and gone without a fault": {func(c *desireCase) {
			c.k.since = time.Now()
			c.wrote(c.k, 2)
		}, "data 2 is written, and the servers have []"},
		"written, and an operator's data at the same moment": {happens: func(c *desireCase) {
			c.k.since = time.Now()
			c.world.disturbed.Store(time.Now().UnixNano())
			c.create(ephemeral, path, "a#1")
			c.look()
			_, err := c.world.operator.SetData().ForPath(c.Context(), path, []byte("of the operator"))
			if err != nil {
				c.Fatal(err)
			}
			c.wrote(c.k, 2)
		}},
		"events in turns": {happens: func(c *desireCase) {
			c.create(ephemeral, path, "a#2")
			for _, e := range []nodes.EventType{nodes.Created, nodes.Refused, nodes.Lost, nodes.Created} {
				c.notified(c.k, nodes.Event{Type: e})
			}
		}},
		"created twice": {func(c *desireCase) {
			c.notified(c.k, nodes.Event{Type: nodes.Created})
			c.notified(c.k, nodes.Event{Type: nodes.Created})
		}, "a is Created twice"},
		"left in the end": {func(c *desireCase) {
			c.create(ephemeral, path, "a#2")
			c.world.desired = []*desiredNodes{c.desiredNodes}
			c.world.awaitNoRemains()
		}, "left in the end: /nodes/a (a#2"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				if err := w.operator.BlockUntilConnected(t.Context()); err != nil {
					t.Fatal(err)
				}
				c := &desireCase{T: t, desiredNodes: newDesiredNodes(w), k: &desire{
					name: "a", process: &process{world: w}, client: w.operator, node: keptByNobody{}, ephemeral: true,
				}}
				c.add(c.k)
				c.k.set = 2
				<-time.After(2 * settleLimit)
				if tt.happens != nil {
					tt.happens(c)
				}
				c.look()
				if tt.want != "" {
					checkViolation(t, w, tt.want)
				} else if w.violation != "" {
					t.Error(w.violation)
				}
			})
		})
	}
}

func TestMemberThatMissesAnotherIsAViolation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := &desireCase{T: t, desiredNodes: newDesiredNodes(w)}
		m := nodes.NewGroupMember(w.operator, c.group, "a", []byte("a#1")) // not started: it knows itself alone
		c.create(builders.Ephemeral, c.group+"/a", "a#1")
		c.awaitKnown(t.Context(), c.group, "a member", m.CurrentMembers)
		if w.violation != "" {
			t.Fatal(w.violation)
		}
		c.create(builders.Ephemeral, c.group+"/b", "b#1")
		c.awaitKnown(t.Context(), c.group, "a member", m.CurrentMembers)
		checkViolation(t, w, "a member of /group knows a=a#1 , and there are a=a#1 b=b#1")
	})
}
