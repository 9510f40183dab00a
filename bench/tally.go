package main

// tally counts the operations of a run, or of a part of it.
type tally struct {
	ops, errors int64
	first       error // of the errors
}

// count counts an operation that ended with err and reports whether it was a success.
func (t *tally) count(err error) bool {
	if err != nil {
		t.fail(err)
		return false
	}
	t.ops++
	return true
}

func (t *tally) fail(err error) {
	if t.errors++; t.first == nil {
		t.first = err
	}
}

func (t *tally) merge(o tally) {
	t.ops += o.ops
	t.errors += o.errors
	if t.first == nil {
		t.first = o.first
	}
}

// report stores the counts in r.
func (t *tally) report(r *result) {
	r.Ops, r.Errors = t.ops, t.errors
	if t.first != nil {
		r.FirstError = t.first.Error()
	}
}
