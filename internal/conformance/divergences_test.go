package conformance_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// divergences are the deliberate differences of the server in memory from Apache ZooKeeper, which the comparison skips.
// The table in docs/curatortest.md gives the reasons.
var divergences = []string{
	orderOfSets,
	setACLPipelined,
	multiPipelined,
	containerPipelined,
	nonsense,
}

const (
	// orderOfSets: children, ephemeral nodes and identities come in the order of Java's hash tables there, in that of
	// another hash here. The narrator sorts them, and what is heard of the end of a session.
	orderOfSets = "order-of-sets"
	// setACLPipelined: a request that is sent before the answer to a setACL may still be judged by the old ACL there.
	setACLPipelined = "setacl-pipelined"
	// multiPipelined: a request that is sent before the answer to a multi that cannot be read may be judged by what that
	// multi would have changed.
	multiPipelined = "multi-pipelined"
	// containerPipelined: a request that is sent before the answer to a createContainer with the flags of an ephemeral
	// node may find that there.
	containerPipelined = "container-pipelined"
	// nonsense: requests that no library sends, and that the generator leaves out.
	nonsense = "nonsense"
)

// endsBurst reports whether requests sent before the answer to this one may have other results there.
func endsBurst(r *jute.Request) bool {
	switch r.Op {
	case jute.OpSetACL:
		return true // setACLPipelined
	case jute.OpCreateContainer:
		return r.Flags == zk.FlagEphemeral || r.Flags == zk.FlagEphemeralSequential // containerPipelined
	case jute.OpMulti:
		return slices.ContainsFunc(r.Ops, func(op jute.Request) bool { // multiPipelined
			return isCreate(op.Op) && op.Op != jute.OpCreateTTL && (op.Flags == flagTTL || op.Flags == flagSequentialTTL)
		})
	}
	return false
}

// The flags of nodes with a time to live, which need the opcode.
const (
	flagTTL           = 5
	flagSequentialTTL = 6
)

func isCreate(op jute.Op) bool {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		return true
	}
	return false
}

func TestDivergencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/curatortest.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range divergences {
		if !strings.Contains(string(text), "| `"+id+"` |") {
			t.Errorf("docs/curatortest.md has no row for %s", id)
		}
	}
}
