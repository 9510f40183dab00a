package decimal_test

import (
	"encoding/binary"
	"testing"

	"github.com/gocurator/curator/internal/decimal"
)

func TestIsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"0", "1234", "-123", "+123", "12345678", "-1234567", "123456789012", "1.25", "1e22", "1234\n",
	} {
		if !decimal.IsText([]byte(text)) {
			t.Errorf("%q is no text of a number", text)
		}
	}
	for _, data := range []string{
		"", "\n", "more", "12ab", "0x1f", "1_000", "--12", "1-23", "....", "eeee", "NaN", "1234 ", "1234\x00", "\x001234",
	} {
		if decimal.IsText([]byte(data)) {
			t.Errorf("%q is the text of a number", data)
		}
	}
}

// A count, a page, a port, a time in seconds: none of the numbers that programs usually keep has such bytes.
func TestIsTextOfUsualNumbers(t *testing.T) {
	t.Parallel()
	for n := range uint32(1_000_000) {
		short, long := binary.BigEndian.AppendUint32(nil, n), binary.BigEndian.AppendUint64(nil, uint64(n))
		if decimal.IsText(short) || decimal.IsText(long) {
			t.Fatalf("the bytes of %d are the text of a number", n)
		}
	}
	for _, n := range []uint32{723_000_000, 961_000_000, 1_796_000_000, 1<<31 - 1} { // the third is a time of today
		if decimal.IsText(binary.BigEndian.AppendUint32(nil, n)) {
			t.Errorf("the bytes of %d are the text of a number", n)
		}
	}
}
