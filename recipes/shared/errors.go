package shared

import (
	"errors"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
)

var (
	// ErrStarted is returned by Start of a value that is started or starts. It matches framework.ErrStarted.
	ErrStarted = errtext.Special(errtext.ErrStarted, "shared: already started")
	// ErrNotStarted is returned by methods that need a started value. It matches framework.ErrNotStarted.
	ErrNotStarted = errtext.Special(errtext.ErrNotStarted, "shared: not started")
	// ErrClosed is returned by methods of a closed value. It matches framework.ErrClosed.
	ErrClosed = errtext.Special(errtext.ErrClosed, "shared: closed")
	// ErrUncertain is wrapped by the error of a write whose answer was lost and that may or may not have taken effect. It
	// matches framework.ErrUncertain.
	ErrUncertain = errtext.Special(framework.ErrUncertain, "shared: outcome not known")
	// ErrIllegalVersion is returned by a write that depends on the version -1, which the server takes for any version. A
	// value that is not started has it, and a node can have it after 2^32 - 1 writes. A write that does not depend on the
	// version ends that. In Java: IllegalTrySetVersionException.
	ErrIllegalVersion = errors.New("shared: version -1 cannot be compared")
	// ErrShortData is wrapped by the error about a node of a [SharedCount] with fewer than four bytes that are not the
	// text of a number. In Java: BufferUnderflowException.
	ErrShortData = errors.New("shared: a count has four bytes")
	// ErrText is wrapped by the error about a node of a [SharedCount] whose data is the text of a number, of any length,
	// as another library may have written it, and about a count whose four bytes would be such a text. See
	// [WithoutTextCheck].
	ErrText = errors.New("shared: the bytes of the count are the text of a number, which another library may have " +
		"written; see WithoutTextCheck")
)
