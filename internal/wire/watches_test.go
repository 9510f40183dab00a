package wire

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
)

// named is a watcher that is only looked at.
type named string

func (named) Notify(zk.Event) {}

// registry makes a registry of lines such as "child /a w1".
func registry(tb testing.TB, lines ...string) *watches {
	tb.Helper()
	var ws watches
	for _, line := range lines {
		f := strings.Fields(line)
		k := slices.Index(kindNames[:], f[0])
		if k < 0 || len(f) != 3 {
			tb.Fatalf("bad line %q", line)
		}
		ws.add(kind(k), f[1], named(f[2]))
	}
	return &ws
}

var kindNames = [kinds]string{
	kindData: "data", kindExist: "exist", kindChild: "child",
	kindPersistent: "persistent", kindRecursive: "recursive",
}

// lines is the inverse of registry, sorted.
func (ws *watches) lines() []string {
	var lines []string
	for k := range ws.sets {
		for path, set := range ws.sets[k] {
			for w := range set.all() {
				lines = append(lines, fmt.Sprintf("%s %s %s", kindNames[k], path, w))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func names(list []Watcher) string {
	var s []string
	for _, w := range list {
		s = append(s, string(w.(named)))
	}
	return strings.Join(s, " ")
}

func TestEventsReachTheirWatchers(t *testing.T) {
	oneOfEach := []string{"data /a d", "exist /a e", "child /a c", "persistent /a p", "recursive /a r"}
	tests := []struct {
		name     string
		have     []string
		event    zk.EventType
		path     string
		reported string
		left     []string
	}{
		{
			"created", oneOfEach, zk.EventNodeCreated, "/a",
			"d e p r",
			[]string{"child /a c", "persistent /a p", "recursive /a r"},
		},
		{
			"data changed", oneOfEach, zk.EventNodeDataChanged, "/a",
			"d e p r",
			[]string{"child /a c", "persistent /a p", "recursive /a r"},
		},
		{
			"deleted", oneOfEach, zk.EventNodeDeleted, "/a",
			"d e c p r",
			[]string{"persistent /a p", "recursive /a r"},
		},
		{
			"children changed is not for recursive ones", oneOfEach, zk.EventNodeChildrenChanged, "/a",
			"c p",
			[]string{"data /a d", "exist /a e", "persistent /a p", "recursive /a r"},
		},
		{
			"another node", oneOfEach, zk.EventNodeDeleted, "/b",
			"",
			[]string{"child /a c", "data /a d", "exist /a e", "persistent /a p", "recursive /a r"},
		},
		{
			"below: only recursive ones", oneOfEach, zk.EventNodeDataChanged, "/a/b/c",
			"r",
			[]string{"child /a c", "data /a d", "exist /a e", "persistent /a p", "recursive /a r"},
		},
		{
			"children changed below", oneOfEach, zk.EventNodeChildrenChanged, "/a/b",
			"",
			[]string{"child /a c", "data /a d", "exist /a e", "persistent /a p", "recursive /a r"},
		},
		{
			"recursive ones of all ancestors, the nearest first",
			[]string{"recursive / root", "recursive /a a", "recursive /a/b b", "recursive /a/bc -", "recursive /d -"},
			zk.EventNodeCreated, "/a/b/c", "b a root",
			[]string{"recursive / root", "recursive /a a", "recursive /a/b b", "recursive /a/bc -", "recursive /d -"},
		},
		{
			"recursive one of the root, at the root",
			[]string{"recursive / root"},
			zk.EventNodeDataChanged, "/", "root",
			[]string{"recursive / root"},
		},
		{
			"recursive one of the root, of a child of it",
			[]string{"recursive / root"},
			zk.EventNodeDeleted, "/a", "root",
			[]string{"recursive / root"},
		},
		{
			"a name that begins like another",
			[]string{"recursive /a r"},
			zk.EventNodeCreated, "/ab", "",
			[]string{"recursive /a r"},
		},
		{
			"registered twice, called once",
			[]string{"data /a w", "data /a w", "child /a w", "persistent /a w", "recursive / w", "data /a v"},
			zk.EventNodeDeleted, "/a", "w v",
			[]string{"persistent /a w", "recursive / w"},
		},
		{"nobody", nil, zk.EventNodeDeleted, "/a", "", nil},
		{
			"an event without a path has no watcher",
			[]string{"recursive / r", "persistent / p"},
			zk.EventNodeDeleted, "",
			"",
			[]string{"persistent / p", "recursive / r"},
		},
		{
			"nor is one with half a path",
			[]string{"recursive / r"},
			zk.EventNodeDeleted, "a/b",
			"",
			[]string{"recursive / r"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ws := registry(t, tt.have...)
			if got := names(ws.fired(tt.event, tt.path)); got != tt.reported {
				t.Errorf("got %q, want %q", got, tt.reported)
			}
			if diff := cmp.Diff(tt.left, ws.lines()); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersRegisterWatchers(t *testing.T) {
	tests := []struct {
		name string
		op   jute.Op
		mode int32
		err  error
		want []string
	}{
		{"getData", jute.OpGetData, 0, nil, []string{"data /a w"}},
		{"getData of a missing node", jute.OpGetData, 0, zk.ErrNoNode, nil},
		{"exists", jute.OpExists, 0, nil, []string{"data /a w"}},
		{"exists of a missing node", jute.OpExists, 0, zk.ErrNoNode, []string{"exist /a w"}},
		{"exists, refused", jute.OpExists, 0, zk.ErrNoAuth, nil},
		{"exists, lost", jute.OpExists, 0, jute.ErrConnectionLoss, nil},
		{"getChildren", jute.OpGetChildren, 0, nil, []string{"child /a w"}},
		{"getChildren2", jute.OpGetChildren2, 0, nil, []string{"child /a w"}},
		{"getChildren2 of a missing node", jute.OpGetChildren2, 0, zk.ErrNoNode, nil},
		{"addWatch", jute.OpAddWatch, Persistent, nil, []string{"persistent /a w"}},
		{"addWatch, recursive", jute.OpAddWatch, PersistentRecursive, nil, []string{"recursive /a w"}},
		{"addWatch, unknown to the server", jute.OpAddWatch, Persistent, jute.ErrUnimplemented, nil},
		{"what sets no watch", jute.OpSetData, 0, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var ws watches
			r := &Request{Request: jute.Request{Op: tt.op, Flags: tt.mode}, Watcher: named("w"), Err: tt.err}
			ws.granted(r, "/a")
			ws.granted(r, "/a") // the second time changes nothing
			if diff := cmp.Diff(tt.want, ws.lines()); diff != "" {
				t.Errorf("registry (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSessionEventsReachEveryWatcherOnce(t *testing.T) {
	ws := registry(t, "data /a x", "exist /b x", "child /a y", "persistent /c x", "recursive / z")
	var got []string
	for _, w := range ws.all() {
		got = append(got, string(w.(named)))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"x", "y", "z"}, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if got := len(ws.lines()); got != 5 {
		t.Errorf("%d watches are left, want all 5", got)
	}
}

// A removal takes watches of w, or of everybody, off the registry; what goes to the server must not take with
// it what others need. The server has two tables: that of data, where exists, persistent and recursive
// watches are too, and that of children, where persistent and recursive ones are too.
func TestRemovals(t *testing.T) {
	const remove, check = jute.OpRemoveWatches, jute.OpCheckWatches
	const childType, dataType, anyType = WatchChildren, WatchData, WatchAny
	all := ""
	tests := []struct {
		name     string
		have     []string
		typ      WatcherType
		w        string
		op       jute.Op
		sentType WatcherType
		left     []string
	}{
		{"the only one", []string{"data /a w"}, dataType, "w", remove, dataType, nil},
		{"the only one, by any", []string{"data /a w"}, anyType, "w", remove, anyType, nil},
		{"on a missing node", []string{"exist /a w"}, dataType, "w", remove, dataType, nil},
		{"of children", []string{"child /a w"}, childType, "w", remove, childType, nil},
		{"persistent", []string{"persistent /a w"}, anyType, "w", remove, anyType, nil},
		{"recursive", []string{"recursive /a w"}, anyType, "w", remove, anyType, nil},
		{
			"not the last of data",
			[]string{"data /a w", "data /a v"},
			dataType, "w",
			check, dataType,
			[]string{"data /a v"},
		},
		{
			"not the last of data: the other waits for the node",
			[]string{"data /a w", "exist /a v"},
			dataType, "w",
			check, dataType,
			[]string{"exist /a v"},
		},
		{
			"not the last of children",
			[]string{"child /a w", "child /a v"},
			childType, "w",
			check, childType,
			[]string{"child /a v"},
		},
		{
			"the other watches children",
			[]string{"data /a w", "child /a v"},
			dataType, "w",
			remove, dataType,
			[]string{"child /a v"},
		},
		{
			"the other watches children, by any",
			[]string{"data /a w", "child /a v"},
			anyType, "w",
			remove, dataType,
			[]string{"child /a v"},
		},
		{
			"the other watches data, by any",
			[]string{"child /a w", "data /a v"},
			anyType, "w",
			remove, childType,
			[]string{"data /a v"},
		},
		{
			"both of mine, the other watches children",
			[]string{"data /a w", "child /a w", "child /a v"},
			anyType, "w", remove, dataType,
			[]string{"child /a v"},
		},
		{
			"not the last persistent",
			[]string{"persistent /a w", "persistent /a v"},
			anyType, "w",
			check, anyType,
			[]string{"persistent /a v"},
		},
		{
			"not the last recursive",
			[]string{"recursive /a w", "recursive /a v"},
			anyType, "w",
			check, anyType,
			[]string{"recursive /a v"},
		},
		{
			"a persistent one of another needs the table of data",
			[]string{"data /a w", "persistent /a v"},
			dataType, "w", check, dataType,
			[]string{"persistent /a v"},
		},
		{
			"a recursive one of another needs the table of data",
			[]string{"data /a w", "recursive /a v"},
			anyType, "w", check, anyType,
			[]string{"recursive /a v"},
		},
		{
			"a persistent one of another needs the table of children",
			[]string{"child /a w", "persistent /a v"},
			childType, "w", check, childType,
			[]string{"persistent /a v"},
		},
		{
			"so does one of my own that stays",
			[]string{"data /a w", "persistent /a w"},
			dataType, "w",
			check, dataType,
			[]string{"persistent /a w"},
		},
		{
			"all of mine", []string{"data /a w", "child /a w", "persistent /a w"}, anyType, "w", remove, anyType, nil,
		},
		{
			"everybody's data",
			[]string{"data /a w", "data /a v", "child /a v"},
			dataType, all,
			remove, dataType,
			[]string{"child /a v"},
		},
		{
			"everybody's data beside a persistent one",
			[]string{"data /a w", "persistent /a v"},
			dataType, all,
			check, dataType,
			[]string{"persistent /a v"},
		},
		{
			"everybody's",
			[]string{"data /a w", "exist /a v", "child /a v", "persistent /a v", "recursive /a u"},
			anyType, all, remove, anyType, nil,
		},
		{
			"other nodes stay",
			[]string{"data /a w", "data /b w", "recursive / v", "persistent /a/b v"},
			anyType, "w",
			remove, anyType,
			[]string{"data /b w", "persistent /a/b v", "recursive / v"},
		},
		{"not registered, nor is another", nil, anyType, "w", remove, anyType, nil},
		{
			"not registered, but others are",
			[]string{"data /a v"},
			anyType, "w",
			check, anyType,
			[]string{"data /a v"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ws := registry(t, tt.have...)
			var w Watcher
			if tt.w != all {
				w = named(tt.w)
			}
			op, typ := ws.removal(tt.typ, "/a", w)
			if op != tt.op || typ != tt.sentType {
				t.Errorf("sends %s of type %d, want %s of type %d", op, typ, tt.op, tt.sentType)
			}
			ws.remove(tt.typ, "/a", w)
			if diff := cmp.Diff(tt.left, ws.lines()); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovalLeavesListsInUseAlone(t *testing.T) {
	ws := registry(t, "persistent /a x", "persistent /a y", "persistent /a z")
	before := ws.fired(zk.EventNodeDataChanged, "/a")
	ws.remove(WatchAny, "/a", named("x"))
	if got := names(before); got != "x y z" {
		t.Errorf("the list that a reader may be walking is now %q", got)
	}
}

func TestHas(t *testing.T) {
	ws := registry(t, "data /a d", "exist /b e", "child /a c", "persistent /c p")
	tests := []struct {
		typ  WatcherType
		path string
		w    Watcher
		want bool
	}{
		{WatchData, "/a", named("d"), true},
		{WatchData, "/a", nil, true},
		{WatchAny, "/a", named("d"), true},
		{WatchChildren, "/a", named("d"), false},
		{WatchData, "/a", named("c"), false},
		{WatchData, "/b", named("e"), true},
		{WatchChildren, "/b", nil, false},
		{WatchAny, "/c", named("p"), true},
		{WatchData, "/c", named("p"), false},
		{WatchAny, "/d", nil, false},
	}
	for _, tt := range tests {
		if got := ws.has(tt.typ, tt.path, tt.w); got != tt.want {
			t.Errorf("has(%d, %s, %v) is %t", tt.typ, tt.path, tt.w, got)
		}
	}
}

func TestFramesOfANewConnection(t *testing.T) {
	tests := []struct {
		name string
		have []string
		op   jute.Op
		want []jute.SetWatches
	}{
		{"nothing", nil, jute.OpSetWatches, nil},
		{
			"what servers before 3.6 know",
			[]string{"data /a x", "data /a y", "exist /b x", "child /c x"},
			jute.OpSetWatches,
			[]jute.SetWatches{{
				RelativeZxid: 77, Data: []string{"/a"}, Exist: []string{"/b"}, Child: []string{"/c"},
			}},
		},
		{
			"persistent",
			[]string{"data /a x", "persistent /b x"},
			jute.OpSetWatches2,
			[]jute.SetWatches{{
				RelativeZxid: 77, Data: []string{"/a"}, Exist: []string{}, Child: []string{},
				Persistent: []string{"/b"}, Recursive: []string{},
			}},
		},
		{
			"recursive",
			[]string{"recursive / x"},
			jute.OpSetWatches2,
			[]jute.SetWatches{{
				RelativeZxid: 77, Data: []string{}, Exist: []string{}, Child: []string{},
				Persistent: []string{}, Recursive: []string{"/"},
			}},
		},
		{
			"of children under a recursive one",
			[]string{"child /a x", "child /b x", "data /a x", "recursive /a x"},
			jute.OpSetWatches2,
			[]jute.SetWatches{
				{
					RelativeZxid: 77, Data: []string{"/a"}, Exist: []string{}, Child: []string{"/b"},
					Persistent: []string{}, Recursive: []string{"/a"},
				},
				{
					RelativeZxid: 77, Data: []string{}, Exist: []string{}, Child: []string{"/a"},
					Persistent: []string{}, Recursive: []string{},
				},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			op, bodies := registry(t, tt.have...).frames(77)
			if op != tt.op {
				t.Errorf("opcode %s, want %s", op, tt.op)
			}
			var got []jute.SetWatches
			for _, b := range bodies {
				got = append(got, decodeSetWatches(t, op, b))
			}
			for i := range tt.want {
				if tt.want[i].Exist == nil { // an empty vector is no null: servers walk it
					tt.want[i].Exist = []string{}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("frames (-want +got):\n%s", diff)
			}
		})
	}
}

func decodeSetWatches(tb testing.TB, op jute.Op, body []byte) jute.SetWatches {
	tb.Helper()
	decode := jute.DecodeSetWatches
	if op == jute.OpSetWatches2 {
		decode = jute.DecodeSetWatches2
	}
	w, err := decode(body)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func TestManyWatchesAreSetInFramesThatServersAccept(t *testing.T) {
	for _, op := range []jute.Op{jute.OpSetWatches, jute.OpSetWatches2} {
		t.Run(op.String(), func(t *testing.T) {
			var ws watches
			want := make(map[string]int)
			for n := range 5000 {
				path := fmt.Sprintf("/watched/by/many/%0*d", 1+n%200, n)
				want[path] += 2
				ws.add(kindChild, path, named("x"))
				ws.add(kindData, path, named("x"))
			}
			if op == jute.OpSetWatches2 {
				ws.add(kindRecursive, "/r", named("x"))
				want["/r"]++
			}
			sent, bodies := ws.frames(5)
			if sent != op {
				t.Errorf("opcode %s, want %s", sent, op)
			}
			got := make(map[string]int)
			for _, b := range bodies {
				if len(b) > maxSetWatches+28 {
					t.Errorf("a frame of %d bytes", len(b))
				}
				w := decodeSetWatches(t, op, b)
				if w.RelativeZxid != 5 {
					t.Errorf("relative zxid %d", w.RelativeZxid)
				}
				for _, list := range [][]string{w.Data, w.Exist, w.Child, w.Persistent, w.Recursive} {
					for _, path := range list {
						got[path]++
					}
				}
			}
			if len(bodies) < 2 || !maps.Equal(got, want) {
				t.Errorf("%d watches in %d frames, want %d in several", len(got), len(bodies), len(want))
			}
		})
	}
	t.Run("a path longer than a frame", func(t *testing.T) {
		long := "/" + strings.Repeat("x", maxSetWatches)
		_, bodies := registry(t, "data /a w", "data "+long+" w", "child /b w").frames(5)
		var paths int
		for _, b := range bodies {
			w := decodeSetWatches(t, jute.OpSetWatches, b)
			paths += len(w.Data) + len(w.Child)
		}
		if paths != 3 {
			t.Errorf("%d paths in %d frames, want 3", paths, len(bodies))
		}
	})
}

func TestWatchCountIsThatOfTheTables(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	paths, watchers := []string{"/", "/a", "/a/b"}, []Watcher{named("w1"), named("w2"), named("w3")}
	draw := func() (string, Watcher) { return paths[rnd.IntN(len(paths))], watchers[rnd.IntN(len(watchers))] }
	var ws watches
	most := 0
	for range 2000 {
		path, w := draw()
		switch rnd.IntN(6) {
		case 0:
			ws.fired(zk.EventType(1+rnd.IntN(4)), path)
		case 1:
			ws.remove(WatcherType(1+rnd.IntN(3)), path, w)
		case 2:
			ws.remove(WatcherType(1+rnd.IntN(3)), path, nil)
		default:
			ws.add(kind(rnd.IntN(int(kinds))), path, w)
		}
		n := 0
		for k := range ws.sets {
			for _, set := range ws.sets[k] {
				n += len(slices.Collect(set.all()))
			}
		}
		if ws.n != n {
			t.Fatalf("%d watches are counted, %d are there", ws.n, n)
		}
		most = max(most, n)
	}
	if most < 10 {
		t.Errorf("there were at most %d watches", most)
	}
}
