package simulation_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
)

// The judge of the order finds each kind of violation.
func TestOrderJudge(t *testing.T) {
	write := func(data string, position int, zxid int64, err error) *orderedWrite {
		return &orderedWrite{data: data, background: position >= 0, position: position, zxid: zxid, err: err}
	}
	const foreground = -1
	for name, tt := range map[string]struct {
		writes []*orderedWrite
		want   string
	}{
		"in order": {[]*orderedWrite{write("a", 1, 1, nil), write("b", foreground, 2, nil), write("c", 2, 3, nil)}, ""},
		"a failure between": {
			[]*orderedWrite{write("a", 1, 1, nil), write("b", 2, 0, zk.ErrNoNode), write("c", 3, 3, nil)}, "",
		},
		"an uncertain write that comes late": {
			[]*orderedWrite{write("a", 1, 9, framework.ErrUncertain), write("b", 2, 2, nil)}, "",
		},
		"effects in the wrong order": {
			[]*orderedWrite{write("a", 1, 2, nil), write("b", 2, 1, nil)}, "b took effect at 0x1, before a at 0x2",
		},
		"effects in the wrong order around a failure": {
			[]*orderedWrite{write("a", 1, 2, nil), write("b", 2, 0, zk.ErrNoNode), write("c", foreground, 1, nil)},
			"c took effect at 0x1, before a at 0x2",
		},
		"callbacks in the wrong order": {
			[]*orderedWrite{write("a", 2, 1, nil), write("b", 1, 2, nil)},
			"the callback of b came before that of a",
		},
		"no callback": {[]*orderedWrite{write("a", 0, 1, nil)}, "a has no callback"},
		"success without an effect": {
			[]*orderedWrite{write("a", foreground, 0, nil)}, "a has succeeded, and is not written",
		},
		"failure with an effect": {
			[]*orderedWrite{write("a", 1, 1, zk.ErrNoNode)}, "a is written, and has failed: " + zk.ErrNoNode.Error(),
		},
	} {
		if got := orderViolation(tt.writes); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
