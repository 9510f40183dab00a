package zkserver

import (
	"encoding/hex"
	"math"
	"testing"
)

// The passwords are those that Java computes:
//
//	jshell> var p = new byte[16]; new Random(id ^ 0xB3415C00L).nextBytes(p)
func TestPassword(t *testing.T) {
	for id, want := range map[int64]string{
		0:                   "f22acd4a97e69d6d20a49bb638eadb38",
		1:                   "054cc74a37327db215e702e20c73f005",
		-1:                  "20f62cb5648dc2d771471c8a2486a9ee",
		0x0100123456780000:  "fae18b1fff04a3066806fbaee07225b6",
		0x3000abcdef012345:  "f7957c6bf47902042961099bf0189b16",
		-0x00ffffffffffffff: "054cc74a37327db215e702e20c73f005", // the seed has 48 bits
		math.MaxInt64:       "20f62cb5648dc2d771471c8a2486a9ee",
		math.MinInt64:       "f22acd4a97e69d6d20a49bb638eadb38",
	} {
		if got := hex.EncodeToString(Password(id)); got != want {
			t.Errorf("session %#x: %s, want %s", id, got, want)
		}
	}
}
