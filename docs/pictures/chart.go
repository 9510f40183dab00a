package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// chart is a panel with the answers to its queries.
type chart struct {
	title, unit string
	stacked     bool
	took        time.Duration
	events      []event
	lines       []line
}

// line is a series.
type line struct {
	name   string
	points []point
}

type point struct{ at, value float64 } // at in seconds since the start

// The measures of the picture, in pixels.
const (
	inRow       = 3
	chartWidth  = 380
	chartHeight = 204
	gap         = 8
	plotLeft    = 52
	plotRight   = 20
	plotTop     = 34
	plotHeight  = 110
	legendStep  = 15
	legendRows  = 2
	smallFont   = 10
)

// palette has the colors of lines, in their order.
var palette = []string{
	"#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0",
	"#508642",
}

func drawCharts(w io.Writer, charts []chart) {
	rows := (len(charts) + inRow - 1) / inRow
	width, height := inRow*(chartWidth+gap)+gap, rows*(chartHeight+gap)+gap
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="%d">`+"\n",
		width, height, width, height, smallFont)
	fmt.Fprintln(w, "<title>Panels of the dashboard</title>")
	fmt.Fprintf(w, `<rect width="%d" height="%d" rx="6" fill="#0d1117"/>`+"\n", width, height)
	for i, c := range charts {
		fmt.Fprintf(w, `<g transform="translate(%d %d)">`+"\n",
			gap+i%inRow*(chartWidth+gap), gap+i/inRow*(chartHeight+gap))
		c.draw(w)
		fmt.Fprintln(w, "</g>")
	}
	fmt.Fprintln(w, "</svg>")
}

func (c chart) draw(w io.Writer) {
	fmt.Fprintf(w, `<rect x="0.5" y="0.5" width="%d" height="%d" rx="3" fill="%s" stroke="%s"/>`+"\n",
		chartWidth-1, chartHeight-1, background, border)
	fmt.Fprintf(w, `<text x="12" y="21" font-size="12" font-weight="600" fill="%s">%s</text>`+"\n",
		plain, escaped(c.title))
	const bottom, right = plotTop + plotHeight, chartWidth - plotRight
	x := func(at float64) float64 { return plotLeft + at/c.took.Seconds()*(right-plotLeft) }

	lines := c.visible()
	step, top := scale(lines)
	y := func(value float64) float64 { return bottom - value/top*plotHeight }
	for value := 0.0; value <= top*1.001; value += step {
		fmt.Fprintf(w, `<path d="M%d %.1fH%d" stroke="%s" stroke-opacity="0.5"/>`, plotLeft, y(value), right, border)
		fmt.Fprintf(w, `<text x="%d" y="%.1f" text-anchor="end" fill="%s">%s</text>`+"\n",
			plotLeft-6, y(value)+3.5, faint, withUnit(value, c.unit))
	}
	for at := time.Duration(0); at <= c.took; at += time.Minute {
		fmt.Fprintf(w, `<text x="%.1f" y="%d" text-anchor="middle" fill="%s">%d:00</text>`+"\n",
			x(at.Seconds()), bottom+14, faint, int(at.Minutes()))
	}
	for _, e := range c.events {
		fmt.Fprintf(w, `<path d="M%.1f %dV%d" stroke="%s" stroke-dasharray="3 3"/>`,
			x(e.at.Seconds()), plotTop, bottom, faint)
		fmt.Fprintf(w, `<text x="%.1f" y="%d" text-anchor="middle" fill="%s">%s</text>`+"\n",
			x(e.at.Seconds()), plotTop-2, faint, e.mark)
	}
	if len(lines) == 0 {
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="middle" font-size="12" fill="%s">No data</text>`+"\n",
			(plotLeft+right)/2, plotTop+plotHeight/2, faint)
	}
	filled := c.stacked || len(lines) <= 3
	for i, l := range slices.Backward(lines) { // the first is in front, and its area the lowest
		color := palette[i%len(palette)]
		for part := range parts(l.points) {
			var path strings.Builder
			for _, p := range part {
				fmt.Fprintf(&path, "L%.1f %.1f", x(p.at), y(p.value))
			}
			curve := "M" + path.String()[1:]
			opacity := 0.1
			if c.stacked {
				opacity = 1
			}
			if filled {
				fmt.Fprintf(w, `<path d="%sV%dH%.1fZ" fill="%s" fill-opacity="%g"/>`,
					curve, bottom, x(part[0].at), color, opacity)
			}
			if !c.stacked {
				fmt.Fprintf(w, `<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`, curve, color)
			}
			fmt.Fprintln(w)
		}
	}
	c.drawLegend(w, lines)
}

// visible returns the lines that are ever above zero, or all if none is, each on the lines before it if they are
// stacked.
func (c chart) visible() []line {
	lines := slices.DeleteFunc(slices.Clone(c.lines), func(l line) bool {
		return !slices.ContainsFunc(l.points, func(p point) bool { return p.value > 0 })
	})
	if len(lines) == 0 {
		return c.lines
	}
	if !c.stacked {
		return lines
	}
	sum := make(map[float64]float64)
	for i, l := range lines {
		points := slices.Clone(l.points)
		for j, p := range points {
			sum[p.at] += p.value
			points[j].value = sum[p.at]
		}
		lines[i].points = points
	}
	return lines
}

// parts yields the points between the gaps of a line.
func parts(points []point) func(yield func([]point) bool) {
	return func(yield func([]point) bool) {
		begin := 0
		for i := range points {
			last := i == len(points)-1
			if (last || points[i+1].at-points[i].at > 1.5*scrapeInterval.Seconds()) && !yield(points[begin:i+1]) {
				return
			}
			if !last && points[i+1].at-points[i].at > 1.5*scrapeInterval.Seconds() {
				begin = i + 1
			}
		}
	}
}

// scale returns the step between the grid lines, and the value of the highest.
func scale(lines []line) (step, top float64) {
	highest := 0.0
	for _, l := range lines {
		for _, p := range l.points {
			highest = max(highest, p.value)
		}
	}
	if highest == 0 {
		return 1, 1
	}
	step = math.Pow(10, math.Floor(math.Log10(highest/3)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if highest/(step*factor) <= 4 {
			step *= factor
			break
		}
	}
	return step, step * math.Ceil(highest/step)
}

// withUnit returns a value as Grafana writes it.
func withUnit(value float64, unit string) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	switch {
	case unit == "s" && value == 0:
		return "0 s"
	case unit == "s" && value < 1:
		return number(value*1000) + " ms"
	case unit == "s":
		return number(value) + " s"
	case unit == "ops" || unit == "cps":
		return number(value) + "/s"
	}
	return number(value)
}

// drawLegend names the lines, those with the highest values if there is no room for all.
func (c chart) drawLegend(w io.Writer, lines []line) {
	type entry struct {
		index   int
		highest float64
	}
	var entries []entry
	for i, l := range lines {
		e := entry{index: i}
		for _, p := range l.points {
			e.highest = max(e.highest, p.value)
		}
		entries = append(entries, e)
	}
	if !c.stacked {
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(b.highest, a.highest) })
	}
	const left, limit = 12, chartWidth - 12
	x, row := left, 0
	for n, e := range entries {
		name := lines[e.index].name
		width := 18 + len(name)*6 // pixels of a wide character
		room := limit
		if n < len(entries)-1 && row == legendRows-1 {
			room -= 30 // for the sign that there are more
		}
		if x > left && x+width > room {
			if row == legendRows-1 {
				fmt.Fprintf(w, `<text x="%d" y="%d" fill="%s">+%d</text>`+"\n",
					x, plotTop+plotHeight+34+row*legendStep, faint, len(entries)-n)
				return
			}
			x, row = left, row+1
		}
		at := plotTop + plotHeight + 34 + row*legendStep
		fmt.Fprintf(w, `<rect x="%d" y="%d" width="10" height="3" fill="%s"/>`, x, at-5, palette[e.index%len(palette)])
		fmt.Fprintf(w, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", x+14, at, plain, escaped(name))
		x += width + 8
	}
}
