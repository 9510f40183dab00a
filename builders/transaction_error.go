package builders

import (
	"errors"
	"fmt"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
)

// refusedError is the error of a transaction that names which of its operations the server has refused. It is made at
// the edge: telemetry does not hold paths in its errors.
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

// refused returns err, which o has finished with, with the operation that the server has refused if it says so.
func (o *transactionOp) refused(err error) error {
	if err == nil || exec.IsIndefinite(err) { // not an answer, which may still be on its way into o
		return err
	}
	for i, r := range o.Reply.Results {
		if i < len(o.ops) && r.Op == jute.OpError && r.Code.Err() == err {
			return &refusedError{index: i, verb: o.ops[i].verb(), path: o.ops[i].path, err: err}
		}
	}
	return err
}

// named is refused for an error that is wrapped already.
func (o *transactionOp) named(err error) error {
	var failed *OpError
	if errors.As(err, &failed) {
		failed.Err = o.refused(failed.Err)
	}
	return err
}
