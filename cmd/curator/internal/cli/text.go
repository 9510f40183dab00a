package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPreview is how many characters of the data of a node a table shows.
const maxPreview = 60

// preview returns the beginning of data for a terminal: text as it is, if it is printable, and anything else in hex.
func preview(data []byte) string {
	if utf8.Valid(data) && strings.IndexFunc(string(data), func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return shorten(string(data))
	}
	if utf8.Valid(data) && strings.IndexFunc(string(data), isBinary) < 0 {
		return shorten(strconv.Quote(string(data)))
	}
	n := min(len(data), maxPreview/2)
	text := fmt.Sprintf("0x%x", data[:n])
	if n < len(data) {
		text += "…"
	}
	return text
}

// isBinary reports whether no text has the character.
func isBinary(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxPreview {
		return text
	}
	return string(runes[:maxPreview-1]) + "…"
}

// line returns a text for a terminal: characters that it could obey are escaped.
func line(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// printable returns a name for a terminal: what it could obey as a command is escaped.
func printable(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
}
