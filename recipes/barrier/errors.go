package barrier

import "errors"

var (
	// ErrEntered is returned by Enter of a member that has entered and not left, or is about to. In Java:
	// NodeExistsException.
	ErrEntered = errors.New("barrier: entered already")
	// ErrNotEntered is returned by Leave of a member that has not entered. In Java: IllegalStateException.
	ErrNotEntered = errors.New("barrier: not entered")
)
