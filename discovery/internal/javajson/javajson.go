// Package javajson writes JSON as Jackson does in Java, byte for byte, and takes JSON apart without losing a byte.
package javajson

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// AppendString appends a string. Unlike encoding/json, Jackson escapes no HTML and no line separators, writes the
// numbers of control characters in upper case, and escapes each character beyond 16 bits. What is not UTF-8 becomes
// U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, len(s)+2), '"') // most strings have nothing to escape
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r >= ' ' && r <= math.MaxUint16:
			dst = utf8.AppendRune(dst, r)
		case r > math.MaxUint16:
			r -= 1 << 16
			dst = appendEscape(appendEscape(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
		case short[r] != 0:
			dst = append(dst, '\\', short[r])
		default:
			dst = appendEscape(dst, r)
		}
	}
	return append(dst, '"')
}

// short are the control characters that have a letter.
var short = [' ']byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}

func appendEscape(dst []byte, unit rune) []byte {
	const digits = "0123456789ABCDEF"
	return append(dst, '\\', 'u', digits[unit>>12&15], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}

// AppendFloat appends a finite number of 32 or 64 bits as Java prints one: always with a point, and with an exponent
// unless it is 0 or from 0.001 to 10 million.
func AppendFloat(dst []byte, f float64, bits int) []byte {
	start := len(dst)
	if abs := math.Abs(f); abs == 0 || abs >= 1e-3 && abs < 1e7 {
		dst = strconv.AppendFloat(dst, f, 'f', -1, bits)
		return withPoint(dst, start)
	}
	text := strconv.AppendFloat(nil, f, 'e', -1, bits) // 1.5e+10
	if !bytes.Contains(text, []byte{'.'}) {
		text = strconv.AppendFloat(nil, f, 'e', 1, bits) // Java's nearest of two digits: 4.9E-324, not 5.0E-324
	}
	digits, exponent, _ := bytes.Cut(text, []byte{'e'})
	n, _ := strconv.Atoi(string(exponent)) // it is a number
	dst = append(append(dst, digits...), 'E')
	return strconv.AppendInt(dst, int64(n), 10)
}

// withPoint appends ".0" unless there is a point from start on.
func withPoint(dst []byte, start int) []byte {
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}
