package barrier

import "errors"

var (
	// ErrEntered is returned by Enter if the member has entered and not left, or is entering. In Java:
	// NodeExistsException.
	ErrEntered = errors.New("barrier: entered already")
	// ErrNotEntered is returned by Leave if the member has not entered. In Java: IllegalStateException.
	ErrNotEntered = errors.New("barrier: not entered")
)
