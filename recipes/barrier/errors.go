package barrier

import "errors"

var (
	// ErrEntered is returned by Enter if the member has entered and not left, or is entering. In Java:
	// NodeExistsException.
	ErrEntered = errors.New("barrier: already entered")
	// ErrSessionEnded is returned by Enter if the session has ended since it created the node of the member, and a round
	// may have begun and ended meanwhile. The others may have counted the member.
	ErrSessionEnded = errors.New("barrier: the session ended, and a round may have begun and ended meanwhile")
	// ErrNotEntered is returned by Leave if the member has not entered. In Java: IllegalStateException.
	ErrNotEntered = errors.New("barrier: not entered")
)
