package docs_test

import (
	"strings"
	"testing"
)

// The page on the hand-over repeats figures of the page on performance, which bench rewrites.
func TestHandoverHasFiguresOfPerformance(t *testing.T) {
	t.Parallel()
	const work = "mutex hand-over, a long line"
	rows := make(map[string][]string) // by their third and fourth column
	for line := range strings.Lines(readPage(t, "performance-tables.md")) {
		columns := strings.Split(strings.TrimSpace(line), " | ")
		if columns[0] == "| "+work {
			rows[columns[2]+", "+columns[3]] = columns
		}
	}
	ratio, of10, of1000 := rows["p50 µs, 10 in line"], rows["10 in line, "], rows["1000 in line, "]
	if ratio == nil || of10 == nil || of1000 == nil {
		t.Fatalf("the rows of %q: %q", work, rows)
	}
	page := readPage(t, "design/handover.md")
	for _, want := range []string{
		"| 10 | 0.6 kB | " + of10[4] + " µs | |",
		"| 1000 | 59 kB | " + of1000[4] + " µs | " + ratio[5] + " (" + ratio[6] + ") |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("design/handover.md does not have: %s", want)
		}
	}
}
