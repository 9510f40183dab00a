package builders

import (
	"errors"
	"fmt"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
)

// refusedError is the error of a transaction with the operation that the server has refused. It is made last: telemetry
// takes errors without paths.
type refusedError struct {
	index      int
	verb, path string
	err        error
}

// Error returns the index among the results, the operation, its path, and the cause.
func (r *refusedError) Error() string {
	return fmt.Sprintf("op %d %s %s: %s", r.index, r.verb, r.path, errtext.Cause(r.err, "curator"))
}

// Unwrap returns the cause.
func (r *refusedError) Unwrap() error { return r.err }

// refused returns err, the error of o, with the operation that the server has refused, if the server has named it.
func (o *transactionOp) refused(err error) error {
	if err == nil || exec.IsIndefinite(err) { // no answer; one may still be written into o
		return err
	}
	for i, r := range o.op.Reply().Results {
		if i < len(o.ops) && r.Op == jute.OpError && r.Code.Err() == err {
			return &refusedError{index: i, verb: o.ops[i].verb(), path: o.ops[i].path, err: err}
		}
	}
	return err
}

// named is refused for an error that has the operation already.
func (o *transactionOp) named(err error) error {
	var failed *OpError
	if errors.As(err, &failed) {
		failed.Err = o.refused(failed.Err)
	}
	return err
}
