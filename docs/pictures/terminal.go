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
)

// span is text in one color.
type span struct{ color, text string }

// drawTerminal draws a command and its output. The program prints no colors: the picture takes them from the
// form of a line.
func drawTerminal(w io.Writer, command, output string) {
	lines := [][]span{{{good, "$ "}, {plain, command}}}
	for line := range strings.Lines(strings.TrimRight(output, "\n")) {
		lines = append(lines, colored(strings.TrimRight(line, "\n")))
	}
	columns := 0
	for _, line := range lines {
		n := 0
		for _, s := range line {
			n += utf8.RuneCountInString(s.text)
		}
		columns = max(columns, n)
	}
	width := int(float64(columns)*advance) + 2*margin
	height := titleBar + len(lines)*lineStep + margin
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%g">`+"\n",
		width, height, width, height, fontSize)
	fmt.Fprintf(w, "<title>%s</title>\n", escaped(command))
	fmt.Fprintf(w, `<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n",
		width-1, height-1, background, border)
	for i, color := range []string{"#ff5f56", "#ffbd2e", "#27c93f"} {
		fmt.Fprintf(w, `<circle cx="%d" cy="%d" r="6" fill="%s"/>`+"\n", margin+6+20*i, titleBar/2, color)
	}
	for i, line := range lines {
		fmt.Fprintf(w, `<text x="%d" y="%d" xml:space="preserve" style="white-space: pre">`,
			margin, titleBar+(i+1)*lineStep-lineStep/4)
		for _, s := range line {
			fmt.Fprintf(w, `<tspan fill="%s">%s</tspan>`, s.color, escaped(s.text))
		}
		fmt.Fprintln(w, "</text>")
	}
	fmt.Fprintln(w, "</svg>")
}

var title = regexp.MustCompile(`^\d+\. `)

// colored returns the spans of a line of the quickstart.
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

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
