package jute

import "github.com/go-zookeeper/zk"

// Result is the outcome of one operation of a multi or multiRead. A failed multi changed nothing: the
// operations before the one that failed have CodeOK, those after it CodeRuntimeInconsistency, all of them
// with OpError.
type Result struct {
	Op       Op // OpError for one that failed
	Code     Code
	Path     string
	Data     []byte
	Stat     zk.Stat
	Children []string
}

func appendResults(b []byte, results []Result) []byte {
	for i := range results {
		r := &results[i]
		b = appendMultiHeader(b, multiHeader{op: r.Op, err: r.Code})
		switch r.Op {
		case OpCreate:
			b = AppendString(b, r.Path)
		case OpCreate2, OpCreateContainer, OpCreateTTL:
			b = AppendString(b, r.Path)
			b = AppendStat(b, &r.Stat)
		case OpSetData:
			b = AppendStat(b, &r.Stat)
		case OpGetData:
			b = AppendBuffer(b, r.Data)
			b = AppendStat(b, &r.Stat)
		case OpGetChildren:
			b = AppendStrings(b, r.Children)
		case OpError:
			b = AppendInt32(b, int32(r.Code))
		}
	}
	return appendMultiHeader(b, multiEnd)
}

// results reads the results up to the closing header. The code of a failed operation stands in its header
// and again in its body; the body's is the one Java believes. More than most results are refused: a result takes more
// memory than bytes.
func (d *Decoder) results(most int) []Result {
	var results []Result
	var h multiHeader
	for d.next(&h) {
		if len(results) == most {
			d.fail(errLength)
			break
		}
		results = append(results, Result{Op: h.op})
		r := &results[len(results)-1]
		switch h.op {
		case OpCreate:
			r.Path = d.String()
		case OpCreate2, OpCreateContainer, OpCreateTTL:
			r.Path = d.String()
			d.Stat(&r.Stat)
		case OpSetData:
			d.Stat(&r.Stat)
		case OpGetData:
			r.Data = d.Buffer()
			d.Stat(&r.Stat)
		case OpGetChildren:
			r.Children = d.Strings()
		case OpDelete, OpCheck:
		case OpError:
			r.Code = Code(d.Int32())
		default:
			d.fail(errMultiOp)
		}
	}
	return results
}
