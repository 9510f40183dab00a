package retry

// prompter marks the policies of this package. They compute their answers, so a client may call them on any goroutine;
// it calls a policy of the program on another one, because that may block.
type prompter interface{ Prompt() bool }

func (exponential) Prompt() bool  { return true }
func (nTimes) Prompt() bool       { return true }
func (untilElapsed) Prompt() bool { return true }
func (forever) Prompt() bool      { return true }

// Prompt reports whether the wrapped policy is prompt, so that it may run on any goroutine.
func (s sessionFailed) Prompt() bool {
	p, ok := s.policy.(prompter)
	return ok && p.Prompt()
}
