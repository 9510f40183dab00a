// Package decimal recognizes numbers that are written as text. Counters of other libraries, as kazoo's Counter, keep
// "1234" in a node; Java Curator keeps the bytes of an int or a long, and reads any four or eight bytes as such.
package decimal

import (
	"strconv"
	"strings"
)

// IsText reports whether data is the text of a decimal number, perhaps with a line end behind it.
func IsText(data []byte) bool {
	text := strings.TrimSuffix(string(data), "\n")
	if strings.Trim(text, "0123456789+-.e") != "" {
		return false
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}
