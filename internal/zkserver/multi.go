package zkserver

import (
	"slices"

	"github.com/gocurator/curator/internal/jute"
)

// addAll adds the operations of a multi. If one is refused, the transaction is empty and the results show which one:
// the operations before it have no error, and those after it are not tried.
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

// asInMulti returns the results of a multi: every create that has a stat is a create2 there.
func asInMulti(results []jute.Result) []jute.Result {
	for i := range results {
		switch results[i].Op {
		case jute.OpCreateContainer, jute.OpCreateTTL:
			results[i].Op = jute.OpCreate2
		}
	}
	return results
}

// readInMulti converts a create as Apache ZooKeeper 3.9 does when it reads a multi: the flags of a container or of a
// node with a time to live choose the operation, otherwise the opcode does. It returns false if the two contradict each
// other.
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

// inMulti converts a create as Apache ZooKeeper before 3.9 does within a multi: the flags choose the operation, and not
// the opcode. It returns false if the two contradict each other.
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
