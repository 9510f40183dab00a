package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// newReport returns the tables: the budget, and the figures behind it.
func newReport(outcomes []*outcome) string {
	var b strings.Builder
	b.WriteString("| work | server | metric | against | budget | measured | range | |\n")
	b.WriteString("|---|---|---|---|--:|--:|--:|---|\n")
	for _, o := range outcomes {
		if o.err != nil {
			b.WriteString(o.row.cells() + " | | | | | **failed** |\n")
			continue
		}
		for _, l := range o.row.budget {
			writeBound(&b, o, l)
		}
	}
	b.WriteString("\n| work | server | contender |")
	for _, m := range columns {
		fmt.Fprintf(&b, " %s |", m.name)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("--:|", len(columns)) + "\n")
	for _, o := range outcomes {
		for i, e := range o.row.entries {
			if o.err == nil && len(o.results[i]) > 0 {
				writeEntry(&b, o, i, e)
			}
		}
	}
	return b.String()
}

func writeBound(b *strings.Builder, o *outcome, l bound) {
	unit := ""
	if l.against != "" {
		unit = "×"
	}
	sign := "≤"
	if l.least {
		sign = "≥"
	}
	fmt.Fprintf(b, "%s %s | %s | %s %s%s |", o.row.cells(), l.name(), l.rival(), sign, number(l.limit), unit)
	s, mark := spreadOf(l.values(o)), "met"
	if math.IsNaN(s.mid) {
		b.WriteString(" | | not measured |\n")
		return
	}
	if !l.isMet(s.mid) {
		mark = "**missed**"
	}
	fmt.Fprintf(b, " %s%s | %s–%s | %s |\n", number(s.mid), unit, number(s.low), number(s.high), mark)
}

// columns are those of the second table.
var columns = []metric{rate, p50, p99, cpu, allocs, memory, threads, heap, requests}

func writeEntry(b *strings.Builder, o *outcome, i int, e entry) {
	fmt.Fprintf(b, "%s %s |", o.row.cells(), e.name)
	for _, m := range columns {
		cell := ""
		if o.row.shows(m) && (m.name != allocs.name || e.library != javas) {
			cell = number(spreadOf(o.values(i, m)).mid)
		}
		fmt.Fprintf(b, " %s |", cell)
	}
	b.WriteByte('\n')
}

// number formats three digits, or more before the point, with separators of thousands.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.Abs(v) < 0.0005:
		return "0"
	case math.Abs(v) >= 999.5: // %.3g would round these to 1e+03
		digits := strconv.FormatFloat(v, 'f', 0, 64)
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
		return digits
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
