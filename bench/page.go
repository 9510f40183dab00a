package main

import (
	"bytes"
	"fmt"
	"os"
)

// The tables are put between these lines of a file.
const (
	markBegin = "<!-- tables of bench: begin -->"
	markEnd   = "<!-- tables of bench: end -->"
)

// insertReport replaces what is between the marks of a file.
func insertReport(file, report string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(markBegin))
	_, after, closed := bytes.Cut(rest, []byte(markEnd))
	if !found || !closed {
		return fmt.Errorf("%s has no lines %q and %q", file, markBegin, markEnd)
	}
	text = fmt.Appendf(nil, "%s%s\n\n%s\n%s%s", before, markBegin, report, markEnd, after)
	return os.WriteFile(file, text, 0o644)
}
