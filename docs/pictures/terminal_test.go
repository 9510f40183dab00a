package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// texts returns the text of each text element of an SVG, and fails if it is not well-formed.
func texts(t *testing.T, svg string) (lines []string) {
	t.Helper()
	inside := false
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if inside = inside || token.Name.Local == "text"; token.Name.Local == "text" {
				lines = append(lines, "")
			}
		case xml.EndElement:
			inside = inside && token.Name.Local != "text"
		case xml.CharData:
			if inside {
				lines[len(lines)-1] += string(token)
			}
		}
	}
}

func TestTerminalHasTheOutputLineByLine(t *testing.T) {
	output := "\n1. A <title> & more\n   ok       \"held\"\n   VIOLATED not held\n\nAll 2 invariants held\n"
	var svg strings.Builder
	drawTerminal(&svg, "go run ./it", output)
	want := "$ go run ./it\n" + strings.TrimRight(output, "\n")
	if got := strings.Join(texts(t, svg.String()), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for color, text := range map[string]string{heading: "1. A", good: "   ok ", bad: "   VIOLATED not held"} {
		if !strings.Contains(svg.String(), `<tspan fill="`+color+`">`+text) {
			t.Errorf("%q is not %s", text, color)
		}
	}
}

func TestWindowsHaveTheirLinesInTheirStyles(t *testing.T) {
	screen := "\x1b[1ma title\n\x1b[0m\x1b[39m\x1b[49m\n" +
		"  lock  \x1b[1;32mholds\x1b[0m \x1b[2m# one\x1b[0m \x1b[33mwaits\ntwo\x1b[39m <q>"
	var svg strings.Builder
	drawWindows(&svg, "both", window{"first --flag", styled(screen)}, window{"second", styled("x\n\n")})
	want := "$ first --flag|a title|  lock  holds # one waits|two <q>|$ second|x"
	if got := strings.Join(texts(t, svg.String()), "|"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, s := range []span{
		{heading, "a title"},
		{plain, "  lock  "},
		{good, "holds"},
		{faint, "# one"},
		{waiting, "waits"},
		{waiting, "two"},
		{plain, " &lt;q&gt;"},
	} {
		if !strings.Contains(svg.String(), `<tspan fill="`+s.color+`">`+s.text+`</tspan>`) {
			t.Errorf("%q is not %s in\n%s", s.text, s.color, svg.String())
		}
	}
}

func TestDemoWaitsForAMomentAtWhichBothAgree(t *testing.T) {
	demo := "  lock       /demo/locks/orders     waits     -         holds\n"
	for _, test := range []struct {
		holders string
		want    bool
	}{
		{"  /demo/locks/orders lock holds host-3 3s\n+ /demo/locks/orders lock waits host-1 0s\n", true},
		{"  /demo/locks/orders lock holds host-3 3s\n  /demo/locks/orders lock waits host-2 0s\n", false},
		{"  /demo/locks/orders lock holds host-1 3s\n  /demo/locks/orders lock waits host-3 0s\n", false},
		{"+ /demo/locks/orders lock holds host-3 0s\n  /demo/locks/orders lock waits host-1 0s\n", false},
		{"- /demo/locks/orders lock holds host-3 3s\n  /demo/locks/orders lock waits host-1 0s\n", false},
		{"", false},
	} {
		if got := agree(demo, test.holders); got != test.want {
			t.Errorf("%t for\n%s%s", got, demo, test.holders)
		}
	}
}
