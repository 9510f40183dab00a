package interop_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/queue"
)

var update = flag.Bool("update", false, "write into the testdata of recipes/queue what Java puts")

// recorded is the file of the nodes that Java makes for each put, by the kind of queue. The tests of
// recipes/queue compare ours with it, without Java.
var recorded = filepath.Join("..", "recipes", "queue", "testdata", "java", "nodes.json")

// recording is a node of Java.
type recording struct {
	put
	Name string        `json:"name"`
	Data interop.Bytes `json:"data"`
}

func readRecordings(t *testing.T) (all map[string][]recording) {
	t.Helper()
	text, err := os.ReadFile(recorded)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// writeRecordings writes each node in a line of its own.
func writeRecordings(t *testing.T, all map[string][]recording) {
	t.Helper()
	var text bytes.Buffer
	for i, kind := range queueKinds {
		fmt.Fprintf(&text, "%s\n  %q: [", []string{"{", ","}[min(i, 1)], kind.theirs)
		for i, r := range all[kind.theirs] {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "%s\n    %s", []string{"", ","}[min(i, 1)], line)
		}
		text.WriteString("\n  ]")
	}
	text.WriteString("\n}\n")
	if err := os.WriteFile(recorded, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withoutLockData leaves out the data of the locks of items: Java writes its address, which is never read, and our
// claims are known by it.
func withoutLockData(nodes []nodeProperties) []nodeProperties {
	nodes = slices.Clone(nodes)
	for i, node := range nodes {
		if node.Ephemeral {
			nodes[i].Data = ""
		}
	}
	return nodes
}

// TestNodesOfQueuesAreThoseOfJava has both put the same, and lock the first item. All nodes are the same, and Java's
// are those that are recorded.
func TestNodesOfQueuesAreThoseOfJava(t *testing.T) {
	t.Parallel()
	m := meet(t, 1)
	all := readRecordings(t)
	for _, kind := range queueKinds {
		var puts []put
		for _, r := range all[kind.theirs] {
			puts = append(puts, r.put)
		}
		var ours, theirs []nodeProperties
		for _, s := range m.sides {
			at := newSpot(true)
			e := m.openQueue(s, queueUse{kind: kind, at: at, consumes: true})
			m.put(e, puts[0])
			m.reports(e, "held", 1)
			m.put(e, puts[1:]...)
			if _, java := e.(theirEnd); java {
				theirs = m.propertiesAt(at)
				all[kind.theirs] = record(puts, m.nodes(at.items))
			} else {
				ours = m.propertiesAt(at)
			}
			e.letGo()
		}
		if len(theirs) != len(puts)+3 { // with both parents, and a lock
			t.Errorf("%s: nodes %+v", kind.theirs, theirs)
		}
		if diff := cmp.Diff(withoutLockData(theirs), withoutLockData(ours)); diff != "" {
			t.Errorf("%s (-Java +Go):\n%s", kind.theirs, diff)
		}
	}
	if *update {
		writeRecordings(t, all)
	} else if diff := cmp.Diff(readRecordings(t), all, cmp.AllowUnexported(recording{})); diff != "" {
		t.Errorf("(-recorded +Java):\n%s", diff)
	}
}

// propertiesAt returns the properties of the nodes of a queue, of its locks, and of both paths.
func (m *meeting) propertiesAt(at spot) (all []nodeProperties) {
	m.t.Helper()
	for _, n := range m.nodes(meetingPath) {
		for name, parent := range map[string]string{"items": at.items, "locks": at.locks} {
			if n.path == parent || path.Dir(n.path) == parent {
				name += strings.TrimPrefix(n.path, parent)
				all = append(all, nodeProperties{name, string(n.data), n.stat.EphemeralOwner != 0, fmt.Sprint(n.acl)})
			}
		}
	}
	return all
}

// record returns what was put with the nodes that were made of it; they are in the order of their numbers then.
func record(puts []put, nodes []node) (all []recording) {
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(lastDigits(a.path), lastDigits(b.path)) })
	for i, n := range nodes {
		all = append(all, recording{puts[i], path.Base(n.path), n.data})
	}
	return all
}

func lastDigits(path string) string { return path[len(path)-10:] }

// TestGoReportsForeignNodes puts foreign nodes between items of both sides.
func TestGoReportsForeignNodes(t *testing.T) {
	bad := []interop.Bytes{
		{},
		interop.Bytes("hello"), interop.Bytes("\x00\x01\x00\x02\x02"),
		interop.Bytes("\x00\x01\x00\x01\x01\xff\xff\xff\xff\x02"),
	}
	forBothModes(t, func(t *testing.T, locked bool) {
		m := meet(t, 1)
		ours, theirs := m.sides[0], m.sides[1].(*peer)
		at := newSpot(locked)
		producer := m.openQueue(theirs, queueUse{kind: plainQueue, at: at})
		var paths []string
		for range bad {
			m.put(producer, put{Items: []string{"good"}})
		}
		for _, data := range bad {
			paths = append(paths, theirs.text("create", interop.Args{
				"path": at.items + "/queue-", "mode": "PERSISTENT_SEQUENTIAL", "data": data,
			}))
			m.put(producer, put{Items: []string{"good"}})
		}
		corrupt := make(chan *queue.ItemError, len(bad))
		consumer := m.openQueue(ours, queueUse{
			kind: plainQueue, at: at, consumes: true,
			corrupt: func(item *queue.ItemError) { corrupt <- item },
		})
		m.reports(consumer, "item", 2*len(bad))
		for i, data := range bad {
			c, err := receive(m.ctx, corrupt)
			if err != nil || c.Path != paths[i] || !bytes.Equal(c.Data, data) || c.Err == nil {
				t.Errorf("got %+v, %v, want %q in %s", c, err, data, paths[i])
			}
		}
		m.awaitConsumed(at)
	})
}
