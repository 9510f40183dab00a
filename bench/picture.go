package main

import (
	"fmt"
	"html"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// rivals are the libraries of the ratios in the picture, each with the color of its dots, in light and in dark.
var rivals = []struct{ library, light, dark string }{
	{javas, "#cf222e", "#ff7b72"},
	{plain, "#0969da", "#58a6ff"},
	{limit, "#1a7f37", "#3fb950"},
}

// comparison is a line of the picture: a contender of this library beside its rivals.
type comparison struct {
	label, note string
	times       []float64 // of each rival; NaN without one
}

// comparisons returns the lines that the second table of a report has figures for. A ratio is that of the first metric
// of its row, so turned that more is better.
func comparisons(report string) (all []comparison) {
	both := tables(report)
	if len(both) < 2 {
		return nil
	}
	figures := both[1]
	for _, r := range allRows() {
		m := r.show[0]
		for _, e := range r.entries {
			if e.library != curator {
				continue
			}
			c := comparison{label: r.name, note: string(r.server)}
			if name, found := strings.CutPrefix(e.name, curator); !found || name != "" {
				c.label += ", " + strings.TrimPrefix(name, ", ")
			}
			if m.name != rate.name {
				c.note += ", " + m.name
			}
			for _, rival := range rivals {
				times := figures.value(r, e.name, m) / figures.value(r, r.rival(e, rival.library), m)
				if m.name != rate.name {
					times = 1 / times
				}
				c.times = append(c.times, times)
			}
			if slices.ContainsFunc(c.times, func(v float64) bool { return !math.IsNaN(v) }) {
				all = append(all, c)
			}
		}
	}
	return all
}

// rival returns the name of the contender that does the work of e on the same cores with another library, "" if there
// is none. There is one limit for all cores.
func (r row) rival(e entry, library string) string {
	for _, o := range r.entries {
		if o.library == library && (library == limit || o.load == e.load && o.cores == e.cores) {
			return o.name
		}
	}
	return ""
}

// value returns a figure of a contender; NaN if the table has none above zero.
func (t table) value(r row, contender string, m metric) float64 {
	const before = 4 // cells: nothing, the work, the server and the contender
	at := before + slices.IndexFunc(columns, func(o metric) bool { return o.name == m.name })
	for _, line := range t.of(r) {
		cells := strings.Split(line, "|")
		if at >= len(cells) || strings.TrimSpace(cells[before-1]) != contender {
			continue
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(cells[at]), ",", ""), 64)
		if err == nil && v > 0 {
			return v
		}
	}
	return math.NaN()
}

// pictureOf returns the name of the picture beside a page.
func pictureOf(page string) string { return strings.TrimSuffix(page, filepath.Ext(page)) + ".svg" }

// The places in the picture, in pixels.
const (
	pictureWidth = 1000
	plotLeft     = 500
	plotRight    = 720
	plotTop      = 84
	lineHeight   = 22
	columnWidth  = 104 // of the ratios of one rival: its heading and a space
)

// draw returns the picture of a report: for each comparison a dot for each rival on a logarithmic scale, and the
// numbers.
func draw(report string) string {
	all := comparisons(report)
	low, high := decades(all)
	x := func(v float64) float64 {
		return plotLeft + (math.Log10(v)-float64(low))/float64(high-low)*(plotRight-plotLeft)
	}
	bottom := plotTop + lineHeight*len(all)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" `+
		`font-family="-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif" font-size="13">`+"\n",
		pictureWidth, bottom+12)
	b.WriteString("<title>curator compared with other clients</title>\n" + style())
	fmt.Fprintf(&b, `<rect class="back" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", pictureWidth-1, bottom+11)
	text := func(x float64, y int, class, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.0f" y="%d" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, s)
	}
	text(16, 28, "name", "start", "How many times as good as another client")
	text(16, 48, "note", "start", "Operations/s. For a latency or memory, which the line names, the inverse ratio.")
	for i, rival := range rivals {
		text(numbers(i), plotTop-32, "c"+strconv.Itoa(i), "end", heading(rival.library))
	}
	for d := low; d <= high; d++ {
		class := "grid"
		if d == 0 {
			class = "equal"
		}
		v := math.Pow10(d)
		fmt.Fprintf(&b, `<line class="%s" x1="%.1[2]f" x2="%.1[2]f" y1="%d" y2="%d"/>`+"\n",
			class, x(v), plotTop-8, bottom)
		text(x(v), plotTop-14, "note", "middle", number(v)+"×")
	}
	for i, c := range all {
		y := plotTop + lineHeight*i + lineHeight/2
		text(16, y+4, "name", "start",
			fmt.Sprintf(`%s <tspan class="note">%s</tspan>`, html.EscapeString(c.label), html.EscapeString(c.note)))
		for j, v := range c.times {
			if !math.IsNaN(v) {
				fmt.Fprintf(&b, `<circle class="c%d" cx="%.1f" cy="%d" r="4.5"/>`+"\n", j, x(v), y)
				text(numbers(j), y+4, "c"+strconv.Itoa(j), "end", number(v)+"×")
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// heading returns what stands above the ratios of a library.
func heading(library string) string { return strings.TrimSuffix(library, " Curator") }

// numbers returns the right end of a column of numbers.
func numbers(rival int) float64 { return pictureWidth - 16 - columnWidth*float64(len(rivals)-1-rival) }

// decades returns the powers of ten around all ratios and 1.
func decades(all []comparison) (low, high int) {
	low, high = 0, 1
	for _, c := range all {
		for _, v := range c.times {
			if !math.IsNaN(v) {
				low, high = min(low, int(math.Floor(math.Log10(v)))), max(high, int(math.Ceil(math.Log10(v))))
			}
		}
	}
	return low, high
}

// style returns the colors. The picture has a background, so that its text is readable on any page.
func style() string {
	light := ".back{fill:#ffffff;stroke:#d1d9e0}.grid{stroke:#d1d9e0}.equal{stroke:#59636e}" +
		".name{fill:#1f2328}.note{fill:#59636e}"
	dark := ".back{fill:#0d1117;stroke:#3d444d}.grid{stroke:#30363d}.equal{stroke:#9198a1}" +
		".name{fill:#e6edf3}.note{fill:#9198a1}"
	for i, rival := range rivals {
		light += fmt.Sprintf(".c%d{fill:%s}", i, rival.light)
		dark += fmt.Sprintf(".c%d{fill:%s}", i, rival.dark)
	}
	return "<style>" + light + "@media (prefers-color-scheme: dark){" + dark + "}</style>\n"
}
