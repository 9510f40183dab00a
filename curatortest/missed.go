package curatortest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// ErrNeverHit is wrapped by the error of a Close when a [Rule] has never acted: the fault of the test did not happen. A
// rule with MayMiss may miss.
var ErrNeverHit = errors.New("curatortest: rule never hit")

// missed returns an error for each rule that is not valid or has not hit.
func (f *Faults) missed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, in := range f.unproven {
		if err := in.missed(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forgetProven drops the rules that have hit or may miss. The caller holds mu.
func (f *Faults) forgetProven() {
	kept := f.unproven[:0]
	for _, in := range f.unproven {
		if in.missed() != nil {
			kept = append(kept, in)
		}
	}
	clear(f.unproven[len(kept):])
	f.unproven = kept
}

func (in *Injection) missed() error {
	if in.err != nil {
		return fmt.Errorf("%w (added at %s)", in.err, in.added)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.hits > 0 || in.met || in.rule.MayMiss {
		return nil
	}
	return fmt.Errorf("%w: %v (%d matches, added at %s)", ErrNeverHit, in.rule, in.found, in.added)
}

// String returns the action and the fields that are set, in one line.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(r.Action.String())
	for _, op := range r.Ops {
		b.WriteString(" " + op)
	}
	if r.Path != "" {
		fmt.Fprintf(&b, " at %q", r.Path)
	}
	field := func(set bool, format string, args ...any) {
		if set {
			fmt.Fprintf(&b, ", "+format, args...)
		}
	}
	field(r.SessionID != 0, "session %#x", uint64(r.SessionID))
	field(r.Connection != 0, "connection %d", r.Connection)
	field(r.Chance != 0, "chance %v", r.Chance)
	field(r.Seed != 0, "seed %d", r.Seed)
	field(r.Skip != 0, "skip %d", r.Skip)
	field(r.Count != 0, "count %d", r.Count)
	field(r.Delay != 0, "delay %v", r.Delay)
	if r.Err != nil {
		field(true, "error %q", r.Err.Error())
	}
	field(r.MayMiss, "may miss")
	return b.String()
}

// callerOf returns the file and line of the call of its caller.
func callerOf() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "an unknown place"
	}
	return fmt.Sprintf("%s:%d", file, line)
}
