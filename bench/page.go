package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// The report stands between these lines of a file.
const (
	markBegin = "<!-- tables of bench: begin -->"
	markEnd   = "<!-- tables of bench: end -->"
)

// insertReport puts a report between the marks of a file, and draws the picture beside it. Rows that the report does
// not have stay.
func insertReport(file, report string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(markBegin))
	last, after, closed := bytes.Cut(rest, []byte(markEnd))
	if !found || !closed {
		return fmt.Errorf("%s has no lines %q and %q", file, markBegin, markEnd)
	}
	report = merge(string(last), report)
	text = fmt.Appendf(nil, "%s%s\n\n%s\n%s%s", before, markBegin, report, markEnd, after)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(pictureOf(file), []byte(draw(report)), 0o644)
}

// merge adds the rows of the last report that a new one does not have.
func merge(last, report string) string {
	var all []string
	lastTables := tables(last)
	for i, table := range tables(report) {
		lines := table.head
		for _, r := range allRows() {
			from := table
			if !strings.Contains(report, r.cells()) && i < len(lastTables) {
				from = lastTables[i]
			}
			lines = append(lines, from.of(r)...)
		}
		all = append(all, strings.Join(lines, "\n")+"\n")
	}
	return strings.Join(all, "\n")
}

// table is a table of a report, line by line.
type table struct{ head, lines []string }

// tables returns the tables of a report. An empty line is between two tables.
func tables(report string) (all []table) {
	for part := range strings.SplitSeq(strings.TrimSpace(report), "\n\n") {
		if lines := strings.Split(part, "\n"); len(lines) >= 2 { // names of columns, and their alignment
			all = append(all, table{lines[:2:2], lines[2:]})
		}
	}
	return all
}

// of returns the lines of a row.
func (t table) of(r row) (lines []string) {
	for _, line := range t.lines {
		if strings.HasPrefix(line, r.cells()) {
			lines = append(lines, line)
		}
	}
	return lines
}
