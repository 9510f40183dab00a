package zkserver

import (
	"slices"

	"github.com/gocurator/curator/internal/jute"
)

// addAll adds the operations of a multi. If one is refused, the transaction is empty. The results then have its error,
// no error for the operations before it, and CodeRuntimeInconsistency for those after it, which are not tried.
func (p *proposal) addAll(ops []jute.Request, v Version) (refused []jute.Result, code jute.Code) {
	if v.create2InMulti() {
		ops = slices.Clone(ops)
		for i := range ops {
			if !readInMulti(&ops[i]) {
				return nil, jute.CodeMarshallingError
			}
		}
	}
	for i := range ops {
		r := ops[i]
		if !v.create2InMulti() && !inMulti(&r) {
			p.txn.changes = nil
			return nil, jute.CodeMarshallingError
		}
		code := p.add(&r)
		if code == jute.CodeOK {
			continue
		}
		p.txn.changes = nil
		refused = make([]jute.Result, len(ops))
		for j := range refused {
			refused[j].Op = jute.OpError
			if j > i {
				refused[j].Code = jute.CodeRuntimeInconsistency
			}
		}
		refused[i].Code = code
		return refused, jute.CodeOK
	}
	return nil, jute.CodeOK
}

// asInMulti changes results to the form that they have in a multi, where every create with a stat is a create2.
func asInMulti(results []jute.Result) []jute.Result {
	for i := range results {
		switch results[i].Op {
		case jute.OpCreateContainer, jute.OpCreateTTL:
			results[i].Op = jute.OpCreate2
		}
	}
	return results
}

// readInMulti changes a create to the operation that Apache ZooKeeper 3.9 reads in a multi. The flags of a container or
// of a node with a time to live decide, otherwise the opcode. It returns false if the two contradict each other.
func readInMulti(r *jute.Request) bool {
	switch r.Op {
	case jute.OpCreateTTL:
		return inMulti(r)
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer:
	default:
		return true
	}
	mode, ok := modeOf(r.Flags)
	if mode.container {
		r.Op = jute.OpCreateContainer
	}
	return ok && !mode.ttl
}

// inMulti changes a create to the operation that Apache ZooKeeper before 3.9 executes in a multi, where the flags
// decide and not the opcode. It returns false if the two contradict each other.
func inMulti(r *jute.Request) bool {
	if r.Op != jute.OpCreate && r.Op != jute.OpCreate2 && r.Op != jute.OpCreateContainer && r.Op != jute.OpCreateTTL {
		return true
	}
	mode, _ := modeOf(r.Flags)
	switch {
	case mode.ttl:
		return r.Op == jute.OpCreateTTL
	case mode.container:
		r.Op = jute.OpCreateContainer
	default:
		r.Op = jute.OpCreate
	}
	return true
}
