package recognize_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// TestItems has bytes of Java Curator.
func TestItems(t *testing.T) {
	for text, want := range map[string][]string{
		"00010001 01 00000005 68656c6c6f 02":                                {"hello"},
		"00010001 01 00000003 6f6e65 01 00000000 01 00000005 7468726565 02": {"one", "", "three"},
		"00010001 02": {},
		"00010001 01 00000001 61 02 00 43 54 43 01 7b7d": {"a"}, // with the trailer of Go
		"":                           nil,
		"6f6e65":                     nil,
		"00010001":                   nil,
		"00010001 01 ffffffff 61 02": nil,
		"00010001 01 00000002 61":    nil,
		"00010001 03":                nil,
		"00010002 01 00000001 61 02": nil,
		"00010001 01 00000001 61":    nil,
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		testclient.Must(t, err)
		items, ok := recognize.Items(data)
		if ok != (want != nil) {
			t.Errorf("%s: %v", text, ok)
			continue
		}
		got := []string{}
		for _, item := range items {
			got = append(got, string(item))
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestKindsOfQueues(t *testing.T) {
	for want, names := range map[string][]string{
		"":                   {"locks", "queue-7", "queue-x"},
		"queue":              {"queue-0000000001", "queue-0000000002"},
		"priority-queue":     {"queue-0000000070000000001"},
		"delay-queue":        {"queue-|18BCFE56800|0000000001"},
		"id-queue":           {"queue-|18BCFE56800|0000000001", "queue-|order-1|0000000002"}, // an id may look like a time
		"simple-queue":       {"qn-0000000001"},
		"queue simple-queue": {"queue-0000000001", "qn-0000000001"},
	} {
		var got []string
		for _, kind := range recognize.Kinds(names) {
			got = append(got, string(kind))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: %q, want %q", names, text, want)
		}
	}
}
