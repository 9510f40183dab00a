package simulation_test

import (
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
)

// gathering is a double barrier for two. A case creates the nodes of the members itself.
type gathering struct {
	*testing.T
	*meeting
	clients []*framework.Client
	actors  []*actor
}

func inGathering(t *testing.T, test func(g *gathering), want string) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		w.slots = make([]*slot, 2)
		w.meets = nil
		meetingRecipe(w)
		w.slots = nil
		g := &gathering{T: t, meeting: w.meets[0]}
		g.members = 2
		for _, name := range []string{"a", "b"} {
			client := newOperator(w.cluster)
			defer func() { _ = client.Close() }()
			g.must(client.BlockUntilConnected(t.Context()))
			p := &process{world: w, name: name, client: client, sessions: map[int64]bool{client.SessionID(): true}}
			g.clients = append(g.clients, client)
			g.actors = append(g.actors, &actor{process: p, name: name})
		}
		g.must(createNode(w, g.resource.path))
		test(g)
		checkViolation(t, w, want)
	})
}

func (g *gathering) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g *gathering) look() {
	time.Sleep(time.Millisecond)
	g.world.observe()
}

// come creates the node of a member.
func (g *gathering) come(i int) {
	g.Helper()
	g.create(i)
	g.look()
}

func (g *gathering) create(i int) {
	g.Helper()
	_, err := g.clients[i].Create().WithMode(builders.Ephemeral).
		ForPath(g.Context(), g.resource.path+"/"+g.actors[i].name, nil)
	g.must(err)
}

func (g *gathering) depart(i int) {
	g.Helper()
	g.delete(i)
	g.look()
}

func (g *gathering) delete(i int) {
	g.Helper()
	g.must(g.clients[i].Delete().ForPath(g.Context(), g.resource.path+"/"+g.actors[i].name))
}

// lose ends the session of a member, and its node with it.
func (g *gathering) lose(i int) {
	g.Helper()
	g.must(g.clients[i].Close())
	g.look()
}

func (g *gathering) open() {
	g.Helper()
	g.must(createNode(g.world, g.resource.path+"/"+readyNode))
	g.look()
}

func (g *gathering) shut() {
	g.Helper()
	g.must(g.world.delete(g.resource.path + "/" + readyNode))
	g.look()
}

// enter records that the Enter of a member has returned.
func (g *gathering) enter(i int, called time.Time, before *visit) *visit {
	v := &visit{actor: g.actors[i], called: called}
	g.entered(v, before)
	return v
}

func TestMeeting(t *testing.T) {
	for name, tt := range map[string]struct {
		play func(g *gathering)
		want string
	}{
		"a round": {play: func(g *gathering) {
			began := time.Now()
			g.come(0)
			g.come(1)
			g.open()
			a, b := g.enter(0, began, nil), g.enter(1, began, nil)
			g.depart(0)
			g.depart(1)
			g.shut()
			g.left(a)
			g.left(b)
		}},
		"open for one": {want: "opens for 2 with 1", play: func(g *gathering) {
			g.come(0)
			g.open()
		}},
		"open for two of whom one has just gone": {play: func(g *gathering) {
			g.come(0)
			g.come(1)
			g.depart(1)
			g.open()
		}},
		"open for two of whom one has gone just behind the coming of the other": {play: func(g *gathering) {
			g.come(0)
			g.create(1)
			g.delete(0)
			g.look()
			g.open()
		}},
		"open for two members of the round before the last": {want: "opens for 2 with 1", play: func(g *gathering) {
			g.come(0)
			g.come(1)
			g.open()
			g.depart(1)
			g.shut()
			g.open()
		}},
		"in before it opens": {want: "was not open", play: func(g *gathering) {
			began := time.Now()
			g.come(0)
			g.enter(0, began, nil)
		}},
		"in after it was shut": {want: "was not open", play: func(g *gathering) {
			g.come(0)
			g.come(1)
			g.open()
			g.shut()
			g.enter(0, time.Now().Add(time.Millisecond), nil)
		}},
		"in twice": {want: "for the second time", play: func(g *gathering) {
			began := time.Now()
			g.come(0)
			g.come(1)
			g.open()
			a := g.enter(0, began, nil)
			g.depart(0)
			g.depart(1)
			g.left(a)
			g.come(0)
			g.enter(0, time.Now(), a)
		}},
		"in by what others have left": {want: "by what others have left", play: func(g *gathering) {
			g.come(0)
			g.come(1)
			g.open()
			g.depart(0)
			g.depart(1)
			began := time.Now().Add(time.Millisecond)
			g.come(0)
			g.enter(0, began, nil)
		}},
		"out before another": {want: "others are still in", play: func(g *gathering) {
			began := time.Now()
			g.come(0)
			g.come(1)
			g.open()
			a := g.enter(0, began, nil)
			g.depart(0)
			g.left(a)
		}},
		"out after its session before another that came later": {play: func(g *gathering) {
			began := time.Now()
			g.come(0)
			g.come(1)
			g.open()
			a := g.enter(0, began, nil)
			g.lose(0)
			g.left(a)
		}},
		"out after its session before another that was there": {want: "others are still in", play: func(g *gathering) {
			g.come(1)
			began := time.Now().Add(time.Millisecond)
			g.come(0)
			g.open()
			a := g.enter(0, began, nil)
			g.lose(0)
			g.left(a)
		}},
	} {
		t.Run(name, func(t *testing.T) { inGathering(t, tt.play, tt.want) })
	}
}
