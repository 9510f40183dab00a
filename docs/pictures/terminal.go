package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The measures of the terminal, in pixels. The advance of a character is that of the widest of the fonts.
const (
	fontSize = 13.0
	advance  = 0.61 * fontSize
	lineStep = 19
	margin   = 18
	titleBar = 36

	buttons   = 84 // what is beside them begins here
	windowGap = 12
)

// The colors of the terminal. It is dark in both themes of a reader.
const (
	background = "#161b22"
	border     = "#3d444d"
	plain      = "#c9d1d9"
	faint      = "#8b949e"
	heading    = "#79c0ff"
	good       = "#56d364"
	bad        = "#ff7b72"
	waiting    = "#e3b341"
)

// span is text in one color.
type span struct{ color, text string }

// window is a terminal with its lines. A command whose screen leaves no room for it stands above the lines.
type window struct {
	command string
	lines   [][]span
}

func (w window) width() int {
	columns := 0
	for _, line := range w.lines {
		n := 0
		for _, s := range line {
			n += utf8.RuneCountInString(s.text)
		}
		columns = max(columns, n)
	}
	width := int(float64(columns)*advance) + 2*margin
	if w.command != "" {
		width = max(width, buttons+int(float64(2+utf8.RuneCountInString(w.command))*advance)+margin)
	}
	return width
}

func (w window) height() int { return titleBar + len(w.lines)*lineStep + margin }

// drawTerminal draws a command and its output. The program prints no colors: the picture takes them from the
// form of a line.
func drawTerminal(w io.Writer, command, output string) {
	lines := [][]span{{{good, "$ "}, {plain, command}}}
	for line := range strings.Lines(strings.TrimRight(output, "\n")) {
		lines = append(lines, colored(strings.TrimRight(line, "\n")))
	}
	drawWindows(w, command, window{lines: lines})
}

// drawWindows draws terminals below each other.
func drawWindows(w io.Writer, about string, windows ...window) {
	width, height := 0, -windowGap
	for _, terminal := range windows {
		width = max(width, terminal.width())
		height += terminal.height() + windowGap
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%g">`+"\n",
		width, height, width, height, fontSize)
	fmt.Fprintf(w, "<title>%s</title>\n", escaped(about))
	top := 0
	for _, terminal := range windows {
		terminal.draw(w, top, width)
		top += terminal.height() + windowGap
	}
	fmt.Fprintln(w, "</svg>")
}

// draw draws one terminal.
func (w window) draw(out io.Writer, top, width int) {
	fmt.Fprintf(out, `<rect x="0.5" y="%g" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n",
		float64(top)+0.5, width-1, w.height()-1, background, border)
	for i, color := range []string{"#ff5f56", "#ffbd2e", "#27c93f"} {
		fmt.Fprintf(out, `<circle cx="%d" cy="%d" r="6" fill="%s"/>`+"\n", margin+6+20*i, top+titleBar/2, color)
	}
	if w.command != "" {
		drawLine(out, buttons, top+titleBar/2+lineStep/4, []span{{good, "$ "}, {plain, w.command}})
	}
	for i, line := range w.lines {
		drawLine(out, margin, top+titleBar+(i+1)*lineStep-lineStep/4, line)
	}
}

func drawLine(out io.Writer, x, y int, line []span) {
	if len(line) == 0 {
		return
	}
	fmt.Fprintf(out, `<text x="%d" y="%d" xml:space="preserve" style="white-space: pre">`, x, y)
	for _, s := range line {
		fmt.Fprintf(out, `<tspan fill="%s">%s</tspan>`, s.color, escaped(s.text))
	}
	fmt.Fprintln(out, "</text>")
}

var title = regexp.MustCompile(`^\d+\. `)

// colored returns the spans of a line of the tour.
func colored(line string) []span {
	before, check, isCheck := strings.Cut(line, "ok ")
	switch {
	case title.MatchString(line):
		return []span{{heading, line}}
	case isCheck && strings.TrimSpace(before) == "":
		return []span{{good, before + "ok "}, {plain, check}}
	case strings.Contains(line, "VIOLATED"):
		return []span{{bad, line}}
	case strings.HasPrefix(line, "All "):
		return []span{{good, line}}
	}
	return []span{{faint, line}}
}

// style matches what sets the style of the text behind it.
var style = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// styled returns the spans of a screen whose lines have styles of ANSI. A line begins in the style in which the one
// before it ends.
func styled(screen string) (lines [][]span) {
	var bold, dim bool
	color := ""
	for line := range strings.Lines(strings.TrimRight(screen, "\n")) {
		var spans []span
		add := func(text string) {
			fill := plain
			switch {
			case color != "":
				fill = color
			case dim:
				fill = faint
			case bold:
				fill = heading
			}
			if text != "" {
				spans = append(spans, span{fill, text})
			}
		}
		line = strings.TrimRight(line, "\n")
		end := 0
		for _, m := range style.FindAllStringSubmatchIndex(line, -1) {
			add(line[end:m[0]])
			end = m[1]
			for code := range strings.SplitSeq(line[m[2]:m[3]], ";") {
				switch code {
				case "", "0":
					bold, dim, color = false, false, ""
				case "1":
					bold = true
				case "2":
					dim = true
				case "31":
					color = bad
				case "32":
					color = good
				case "33":
					color = waiting
				case "39":
					color = ""
				}
			}
		}
		add(line[end:])
		lines = append(lines, spans)
	}
	return lines
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
