package main

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/bench/java"
)

// rounds returns the results of a contender that did this many operations a second in each round.
func rounds(ops ...int64) []result {
	results := make([]result, len(ops))
	for i, n := range ops {
		results[i].Result = java.Result{Ops: n, Elapsed: time.Second, CPU: time.Millisecond}
	}
	return results
}

func TestReport(t *testing.T) {
	r := row{
		name: "work", server: nullServer, show: []metric{rate},
		entries: against(work(getDataSync), curator, plain, javas),
		budget: []bound{
			atLeast(2, rate).of(plain), atLeast(1500, rate), atMost(1, cpu).of(plain), atLeast(1, rate).of(javas),
			atMost(0.6, rate).by(plain).of(curator), atLeast(700, rate).by(plain), atLeast(1, rate).by(javas),
			atLeast(800, rate).of(plain).at(cpu),
		},
	}
	report := newReport([]*outcome{
		{row: r, results: [][]result{rounds(1000, 4000, 900), rounds(500, 1000, 900), nil}},
		{row: r, err: errors.New("failed")},
	})
	for _, line := range []string{
		"| work | null server | operations/s | go-zookeeper | ≥ 2× | 2× | 1–4 | met |", // 2, 4 and 1
		"| work | null server | operations/s | – | ≥ 1,500 | 1,000 | 900–4,000 | **missed** |",
		"| work | null server | CPU µs/op | go-zookeeper | ≤ 1× | 0.5× | 0.25–1 | met |",
		"| work | null server | operations/s | Java Curator | ≥ 1× | | | not measured |",
		"| work | null server | operations/s of go-zookeeper | curator | ≤ 0.6× | 0.5× | 0.25–1 | met |",
		"| work | null server | operations/s of go-zookeeper | – | ≥ 700 | 900 | 500–1,000 | met |",
		"| work | null server | operations/s of Java Curator | – | ≥ 1 | | | not measured |",
		"| work | null server | operations/s | CPU µs/op of go-zookeeper | ≥ 800× | 810× | 500–4,000 | met |",
		"| work | null server | | | | | | **failed** |",
		"| work | null server | curator | 1,000 |  |  |  |  |  |  |  |  |",
	} {
		if !strings.Contains(report, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(report)
	}
}

func TestInsertReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const head, align = "| a | b | c |\n", "|---|---|---|\n"
	tables := func(lines ...string) string { // two with the same lines
		return head + align + strings.Join(lines, "") + "\n" + head + align + strings.Join(lines, "")
	}
	line := func(i int, c string) string { return allRows()[i].cells() + " " + c + " |\n" }
	gone := "| of old | null server | old |\n"

	write("before\n" + markBegin + "\nold\n" + markEnd + "\nafter\n")
	for _, step := range []struct{ report, want string }{
		{tables(line(1, "1"), line(3, "1")), tables(line(1, "1"), line(3, "1"))},
		{tables(line(1, "1"), line(3, "1")), tables(line(1, "1"), line(3, "1"))}, // changes nothing
		{tables(line(3, "2")), tables(line(1, "1"), line(3, "2"))},
		{tables(line(2, "3"), line(2, "4")), tables(line(1, "1"), line(2, "3"), line(2, "4"), line(3, "2"))},
		{tables(gone), tables(line(1, "1"), line(2, "3"), line(2, "4"), line(3, "2"))}, // a row that no longer exists
	} {
		if err := insertReport(file, step.report); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		want := "before\n" + markBegin + "\n\n" + step.want + "\n" + markEnd + "\nafter\n"
		if string(text) != want || err != nil {
			t.Errorf("%s, %v\nwant\n%s", text, err, want)
		}
		picture, err := os.ReadFile(filepath.Join(filepath.Dir(file), "page.svg"))
		if string(picture) != draw(step.want) || err != nil {
			t.Errorf("the picture beside the page is %s, %v", picture, err)
		}
	}
	write("no marks")
	if err := insertReport(file, ""); err == nil {
		t.Error("a report was put nowhere")
	}
}

// TestInsertReportDrawsRowsThatStay checks that the picture has the rows of both runs.
func TestInsertReportDrawsRowsThatStay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(markBegin+"\n"+markEnd), 0o600); err != nil {
		t.Fatal(err)
	}
	names := []string{"getData, 16 goroutines", "create, one goroutine"}
	for _, name := range names {
		o := outcomeOf(t, name, realServer, map[string]float64{curator: 100, plain: 10})
		if err := insertReport(file, newReport([]*outcome{o})); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := os.ReadFile(pictureOf(file))
	if err != nil {
		t.Fatal(err)
	}
	texts, dots := elements(t, string(picture))
	for _, name := range names {
		if !slices.Contains(texts, name+" real server") || len(dots) != len(names) {
			t.Errorf("no %q in %q, %d dots", name, texts, len(dots))
		}
	}
}

// TestFailureReplacesTheFigures checks that a failed row shows no figures.
func TestFailureReplacesTheFigures(t *testing.T) {
	r := allRows()[0]
	good := &outcome{row: r, results: [][]result{rounds(1), rounds(1), rounds(1)}}
	last := newReport([]*outcome{good})
	merged := merge(last, newReport([]*outcome{{row: r, err: errors.New("failed")}}))
	if strings.Contains(merged, curator) || !strings.Contains(merged, "**failed**") {
		t.Error(merged)
	}
}

func TestSpread(t *testing.T) {
	if s := spreadOf([]float64{3, math.NaN(), 1}); s != (spread{1, 2, 3}) {
		t.Error(s)
	}
	if s := spreadOf(nil); !math.IsNaN(s.mid) {
		t.Error(s)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.00003: "0", 0.01234: "0.0123",
		1.5: "1.5", 999.4: "999", 999.9: "1,000", 1234567.8: "1,234,568", 12345: "12,345",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h, other histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	other.add(time.Hour)
	h.merge(&other)
	for part, want := range map[float64]float64{0.5: 500, 0.99: 990, 0.001: 2, 1: histogramMax / 1e3} {
		if got := h.quantile(part); math.Abs(got-want) > want/64 {
			t.Errorf("quantile(%v) = %v, want about %v", part, got, want)
		}
	}
	if empty := new(histogram).quantile(0.5); empty != 0 {
		t.Error(empty)
	}
}

// TestRows checks that the rows agree with the rest of the program.
func TestRows(t *testing.T) {
	cases := make(map[string]workload)
	for _, s := range sections {
		maps.Copy(cases, s.workloads)
	}
	seen := make(map[string]bool)
	for _, r := range allRows() {
		if seen[r.String()] {
			t.Errorf("%s twice", r)
		}
		seen[r.String()] = true
		for _, e := range r.entries {
			if _, ok := cases[e.load.Case]; !ok {
				t.Errorf("%s: no case %q", r, e.load.Case)
			}
			if _, ok := libraries[e.library]; !ok && e.library != javas {
				t.Errorf("%s: no library %q", r, e.library)
			}
		}
		for _, b := range r.budget {
			for _, name := range []string{b.subject, b.against} {
				if name != "" && r.entry(name) < 0 {
					t.Errorf("%s: no contender %q", r, name)
				}
			}
			if other := r.entry(b.against); other == 0 && b.subject == "" || other >= 0 && b.against == b.subject {
				t.Errorf("%s: %q compared with itself", r, b.against)
			}
		}
	}
}
