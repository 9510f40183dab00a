package node

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPrefixesAreThoseOfJava(t *testing.T) {
	tests := []struct{ got, want string }{
		{PriorityPrefix(0), "queue-100000000"},
		{PriorityPrefix(10), "queue-10000000A"},
		{PriorityPrefix(math.MaxInt32), "queue-17FFFFFFF"},
		{PriorityPrefix(-1), "queue-0FFFFFFFF"},
		{PriorityPrefix(-10), "queue-0FFFFFFF6"},
		{PriorityPrefix(math.MinInt32), "queue-080000000"},
		{DelayPrefix(time.UnixMilli(1700000000000)), "queue-|18BCFE56800|"},
		{DelayPrefix(time.UnixMilli(1)), "queue-|00000001|"},
		{DelayPrefix(time.Time{}), "queue-|00000000|"},
		{IDPrefix("order"), "queue-|order|"},
		{IDPrefix("a/b|c"), "queue-|a_b_c|"},
		{IDPrefix(""), "queue-||"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestNameIsTakenApart(t *testing.T) {
	tests := []struct {
		name          string
		prefix, field string
		number        int32
		ok            bool
	}{
		{"queue-0000000012", "queue-", "", 12, true},
		{"queue-2147483647", "queue-", "", math.MaxInt32, true},
		{"queue--2147483648", "queue-", "", math.MinInt32, true},
		{"queue--000000007", "queue-", "", -7, true},
		{"queue-1000000050000000003", "queue-100000005", "100000005", 3, true},
		{"queue-0FFFFFFFF-2147483648", "queue-0FFFFFFFF", "0FFFFFFFF", math.MinInt32, true},
		{"queue-|18BCFE56800|0000000001", "queue-|18BCFE56800|", "18BCFE56800", 1, true},
		{"queue-|order|0000000004", "queue-|order|", "order", 4, true},
		{"queue-||0000000004", "queue-||", "", 4, true},
		{"queue-by hand", "queue-", "", 0, false},
		{"queue-", "queue-", "", 0, false},
		{"queue-|", "queue-", "", 0, false},
	}
	for _, tt := range tests {
		n, found := ParseName(tt.name)
		want := Name{Whole: tt.name, Prefix: tt.prefix, Field: tt.field, Number: tt.number, HasNumber: tt.ok}
		if diff := cmp.Diff(want, n, cmp.AllowUnexported(Name{})); !found || diff != "" {
			t.Errorf("%q: found %t (-want +got):\n%s", tt.name, found, diff)
		}
	}
	for _, foreign := range []string{"", "queue", "qn-0000000001", "_c_-queue-0000000001"} {
		if n, found := ParseName(foreign); found {
			t.Errorf("%q is %+v", foreign, n)
		}
	}
}

func TestNamesAreOrderedByKind(t *testing.T) {
	tests := []struct {
		kind  string
		order func(a, b Name) int
		want  []string
	}{
		{"plain", ByNumber, []string{"queue-0000000009", "queue-0000000010", "queue-by hand"}},
		{"rollover", ByNumber, []string{
			"queue-2147483646", "queue-2147483647", "queue--2147483648", "queue--2147483647",
		}},
		{"ids do not count", ByNumber, []string{"queue-|z|0000000001", "queue-|a|0000000002", "queue-|m|0000000003"}},
		{"priority", byPriority, []string{
			"queue-0000000077", // that Java has put back
			"queue-0800000000000000003",
			"queue-0FFFFFFFF0000000001",
			"queue-1000000000000000002",
			"queue-1000000050000000004",
			"queue-1000000050000000005",
			"queue-17FFFFFFF0000000000",
		}},
		{"delay", ByDue, []string{
			"queue-0000000009", // at once
			"queue-|00000001|0000000003",
			"queue-|E8D4A51000|0000000002",
			"queue-|18BCFE56800|0000000000",
			"queue-|18BCFE56800|0000000001",
		}},
	}
	for _, tt := range tests {
		for range 10 {
			var names []Name
			for _, i := range rand.Perm(len(tt.want)) {
				n, _ := ParseName(tt.want[i])
				names = append(names, n)
			}
			slices.SortFunc(names, tt.order)
			got := make([]string, len(names))
			for i, n := range names {
				got[i] = n.Whole
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", tt.kind, diff)
			}
		}
	}
}

func TestPriorityIsReadBack(t *testing.T) {
	for _, want := range []int32{math.MinInt32, -10, -1, 0, 1, 10, math.MaxInt32} {
		n, _ := ParseName(PriorityPrefix(want) + "0000000001")
		if got := n.Priority(); got != int(want) {
			t.Errorf("%s is %d, want %d", n.Whole, got, want)
		}
	}
}
