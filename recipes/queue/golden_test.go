package queue

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// recording is a node that Java has put. Those in testdata/java are written by the tests of package interop, with
//
//	CURATOR_TEST_SERVER=real go test ./interop -run TestNodesOfQueuesAreThoseOfJava -update
type recording struct {
	Items    []string
	Priority int32
	EpochMs  int64
	ItemID   string

	Name, Data string // the bytes in hex
}

func recordings(t *testing.T) (all map[string][]recording) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "java", "nodes.json"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNodesOfJavaAreReadAndWritten(t *testing.T) {
	tests := map[string]struct {
		kind   node.Kind
		prefix func(recording) string
		info   func(recording) Info
	}{
		"queue": {
			node.Plain,
			func(recording) string { return node.ItemPrefix },
			func(recording) Info { return Info{} },
		},
		"priorityQueue": {
			node.ByPriorities(1),
			func(r recording) string { return node.PriorityPrefix(r.Priority) },
			func(r recording) Info { return Info{Priority: int(r.Priority)} },
		},
		"delayQueue": {
			node.Delayed,
			func(r recording) string { return node.DelayPrefix(time.UnixMilli(r.EpochMs)) },
			func(r recording) Info { return Info{Due: time.UnixMilli(r.EpochMs)} },
		},
		"idQueue": {
			node.WithIDs,
			func(r recording) string { return node.IDPrefix(r.ItemID) },
			func(r recording) Info { return Info{ID: strings.NewReplacer("/", "_", "|", "_").Replace(r.ItemID)} },
		},
	}
	all := recordings(t)
	if len(all) != len(tests) {
		t.Errorf("recorded are %d kinds of queues, not %d", len(all), len(tests))
	}
	for name, tt := range tests {
		for number, r := range all[name] {
			if want := fmt.Sprintf("%s%010d", tt.prefix(r), number); r.Name != want {
				t.Errorf("%s: of %+v ours is %s", name, r, want)
			}
			n, found := node.ParseName(r.Name)
			if !found || !n.HasNumber || n.Number != int32(number) || n.Prefix != tt.prefix(r) {
				t.Errorf("%s: %s is %+v", name, r.Name, n)
			}
			var info Info
			info.describe(tt.kind, n)
			if diff := cmp.Diff(tt.info(r), info); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, r.Name, diff)
			}
			q := &queue[string]{codec: codec.Text{}}
			data, err := q.encodeItems(t.Context(), r.Items)
			if hex.EncodeToString(data) != r.Data || err != nil {
				t.Errorf("%s: %q is %x, %v, want %s", name, r.Items, data, err, r.Data)
			}
			bytes, err := hex.DecodeString(r.Data)
			if err != nil {
				t.Fatal(err)
			}
			got, err := q.decode(bytes)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, r.Data, err)
			}
			if diff := cmp.Diff(r.Items, got.(*contents[string]).items); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, r.Data, diff)
			}
		}
		if len(all[name]) < 5 {
			t.Errorf("%s: only %d nodes are recorded", name, len(all[name]))
		}
	}
}
