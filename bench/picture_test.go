package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gocurator/curator/bench/java"
)

// outcomeOf returns the outcome of a row whose contenders have these figures of its first metric.
func outcomeOf(t *testing.T, name string, s server, figures map[string]float64) *outcome {
	t.Helper()
	for _, r := range allRows() {
		if r.name != name || r.server != s {
			continue
		}
		o := &outcome{row: r, results: make([][]result, len(r.entries))}
		for contender, v := range figures {
			one := result{Result: java.Result{Ops: int64(v), Elapsed: time.Second, P50: v}}
			o.results[r.entry(contender)] = []result{one}
		}
		return o
	}
	t.Fatalf("no row %s", name)
	return nil
}

func TestComparisons(t *testing.T) {
	report := newReport([]*outcome{
		outcomeOf(t, "background create, window 1000", realServer, map[string]float64{curator: 9000, javas: 10_000}),
		outcomeOf(t, "background create, window 1000", nullServer, map[string]float64{
			on(oneCore, curator): 2_000_000, on(allCores, curator): 3_000_000, limit: 10_000_000,
			on(oneCore, plain): 100_000, on(allCores, plain): 50_000, on(oneCore, javas): 20_000,
		}),
		outcomeOf(t, "latch, the next of 3 leads after a close", realServer, map[string]float64{curator: 20, javas: 50}),
		outcomeOf(t, "queue, consume out of many", realServer, map[string]float64{
			"50,000 queued": 100, "1000 queued": 100, "Java, 1000 queued": 10,
		}),
	})
	none := math.NaN()
	want := []comparison{
		{"background create, window 1000", "real server", []float64{0.9, none, none}},
		{"background create, window 1000, one core", "null server", []float64{100, 20, 0.2}},
		{"background create, window 1000, all cores", "null server", []float64{none, 60, 0.3}},
		{"latch, the next of 3 leads after a close", "real server, p50 µs", []float64{2.5, none, none}},
		{"queue, consume out of many, 1000 queued", "real server", []float64{10, none, none}},
	}
	got := comparisons(report)
	opts := cmp.Options{cmp.AllowUnexported(comparison{}), cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 0)}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Error(diff)
	}
}

// Headings are set to the right, so each needs a space before it in its column. A letter takes at most 8 pixels on
// average in every font of the picture.
func TestHeadingsOfPictureFitTheirColumns(t *testing.T) {
	for _, rival := range rivals {
		if width := 8 * len(heading(rival.library)+" "); width > columnWidth {
			t.Errorf("%q may take %d pixels, the column has %d", heading(rival.library), width, columnWidth)
		}
	}
}

func TestDraw(t *testing.T) {
	svg := draw(newReport([]*outcome{
		outcomeOf(t, "setData of a lock's holder, one goroutine", realServer, nil), // no rival
		outcomeOf(t, "getData, 16 goroutines", realServer, map[string]float64{curator: 100, javas: 1000, plain: 10}),
	}))
	texts, dots := elements(t, svg)
	for _, want := range []string{
		"getData, 16 goroutines real server", "0.1×", "1×", "10×", "Java", "go-zookeeper", "the limit",
	} {
		if !strings.Contains(strings.Join(texts, "\n")+"\n", want+"\n") {
			t.Errorf("no text %q in %q", want, texts)
		}
	}
	// From 0.1 to 10 there are two decades: the dots are at the ends.
	if want := []string{"500.0", "720.0"}; !cmp.Equal(dots, want) {
		t.Errorf("dots at %v, want %v", dots, want)
	}
	if !strings.Contains(svg, "prefers-color-scheme: dark") || !strings.Contains(svg, `<rect class="back"`) {
		t.Error("there are no colors for the dark, or there is no background")
	}
	if _, dots := elements(t, draw("")); len(dots) > 0 {
		t.Errorf("dots without a figure: %v", dots)
	}
}

// elements returns the texts of a picture and the places of its dots, and fails if the XML is broken.
func elements(t *testing.T, svg string) (texts, dots []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, dots
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "text":
				texts, depth = append(texts, ""), 1
			case "circle":
				dots = append(dots, e.Attr[1].Value)
			}
		case xml.EndElement:
			if e.Name.Local == "text" {
				depth = 0
			}
		case xml.CharData:
			if depth > 0 {
				texts[len(texts)-1] += string(e)
			}
		}
	}
}

var update = flag.Bool("update", false, "draw the picture of docs/performance-tables.md from its tables")

// TestPictureOfPerformanceShowsTables checks that the page and its picture have the same figures.
func TestPictureOfPerformanceShowsTables(t *testing.T) {
	const page = "../docs/performance-tables.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), markBegin)
	report, _, _ := strings.Cut(rest, markEnd)
	want := draw(report)
	if *update {
		if err := os.WriteFile(pictureOf(page), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if picture, err := os.ReadFile(pictureOf(page)); err != nil || string(picture) != want {
		t.Errorf("another picture, %v: go test ./bench -run TestPicture -update", err)
	}
}
