package atomic

import (
	"errors"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
)

var (
	// ErrUncertain is wrapped by the error of a change that may or may not have been applied: the answer of the server
	// was lost, and what the node has become proves neither. The [Result] beside the error has the value before the
	// change and the value that the change would have left. It matches framework.ErrUncertain.
	ErrUncertain = errtext.Special(framework.ErrUncertain, "atomic: outcome not known")
	// ErrConflict is wrapped by the error of a [CachedAtomicNumber] that has no number because other writers were faster
	// at each try to take a block. Nothing is taken.
	ErrConflict = errors.New("atomic: lost every race with other writers")
	// ErrCorrupt is wrapped by the error about a node that has no number: too few bytes, or a text. ForceSet repairs it.
	// In Java: RuntimeException.
	ErrCorrupt = errors.New("atomic: corrupt number")
	// ErrText is wrapped by the error about a number whose node has the text of a number, as another library may have
	// written it, and about a change that would leave such bytes. Nothing is changed. See [WithoutTextCheck]. It matches
	// ErrCorrupt.
	ErrText = errtext.Special(ErrCorrupt, "atomic: the bytes of the number are the text of one, which another library "+
		"may have written; see WithoutTextCheck")
	// ErrOverflow is wrapped by the error of a change that would leave the range of the number. Nothing is changed. Java
	// wraps around.
	ErrOverflow = errors.New("atomic: number overflows")
)

// errExists and errDiffers are the refusals of a change that is not an error.
var (
	errExists  = errors.New("atomic: there is a value")
	errDiffers = errors.New("atomic: another value")
)
