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
