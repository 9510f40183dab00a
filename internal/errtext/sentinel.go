package errtext

import "errors"

// The general errors of what is started and closed. Package framework exports them, and those of the recipes match
// them.
var (
	ErrClosed     = errors.New("curator: client is closed")
	ErrStarted    = errors.New("curator: already started")
	ErrNotStarted = errors.New("curator: not started")
)

// Special returns a sentinel with a text of its own that matches general, too, and nothing that general wraps.
func Special(general error, text string) error { return &special{text: text, general: general} }

type special struct {
	text    string
	general error
}

func (s *special) Error() string { return s.text }

// Is reports whether target is the general error.
func (s *special) Is(target error) bool { return target == s.general }
