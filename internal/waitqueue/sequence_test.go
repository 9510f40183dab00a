package waitqueue

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSequenceFollowsLastPrefix(t *testing.T) {
	tests := []struct {
		node string
		want int32
		ok   bool
	}{
		{"_c_f16b9089-5912-4a51-bf5f-6e7e93cb7ff4-lock-0000000012", 12, true},
		{"lock-0000000000", 0, true},
		{"lock-lock-2147483647", math.MaxInt32, true},
		{"lock--2147483648", math.MinInt32, true}, // behind the largest comes the smallest
		{"lock-", 0, false},
		{"lock-12x", 0, false},
		{"lock-99999999999", 0, false},
		{"foreign", 0, false},
		{"", 0, false},
	}
	for _, tt := range tests {
		if got, ok := Sequence(tt.node, "lock-"); got != tt.want && ok || ok != tt.ok {
			t.Errorf("Sequence(%q) = %d, %v, want %d, %v", tt.node, got, ok, tt.want, tt.ok)
		}
	}
}

func TestFirstWaitsForPreviousContender(t *testing.T) {
	tests := []struct {
		name     string
		children []string
		own      string
		want     string
		found    bool
	}{
		{name: "alone", children: []string{"a-lock-0000000003"}, own: "a-lock-0000000003", found: true},
		{
			name:     "in the middle, in no order",
			children: []string{"d-lock-0000000009", "a-lock-0000000003", "b-lock-0000000001", "c-lock-0000000005"},
			own:      "c-lock-0000000005", want: "a-lock-0000000003", found: true,
		},
		{
			name:     "the names in front of the numbers do not count",
			children: []string{"z-lock-0000000001", "a-lock-0000000002"},
			own:      "a-lock-0000000002", want: "z-lock-0000000001", found: true,
		},
		{
			name:     "foreign nodes do not count",
			children: []string{"foreign", "a-lease-0000000001", "a-lock-0000000002"},
			own:      "a-lock-0000000002", found: true,
		},
		{name: "gone", children: []string{"a-lock-0000000003"}, own: "b-lock-0000000004", want: "a-lock-0000000003"},
		{name: "nothing", own: "b-lock-0000000004"},
		{
			name:     "behind the largest number",
			children: []string{"a-lock-2147483647", "b-lock--2147483648", "c-lock--2147483647"},
			own:      "b-lock--2147483648", want: "a-lock-2147483647", found: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := Verdict{Found: tt.found, Granted: tt.want == "", Watch: tt.want}
			if got := First(tt.children, tt.own, "lock-"); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestSortedOrdersByNumber(t *testing.T) {
	got := Sorted([]string{"x", "b-lock-0000000010", "c-lock-0000000009", "a"}, "lock-")
	want := []string{"c-lock-0000000009", "b-lock-0000000010", "a", "x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkFirstOf1000(b *testing.B) {
	var children []string
	for i := range 1000 {
		children = append(children, fmt.Sprintf("_c_f16b9089-5912-4a51-bf5f-6e7e93cb7ff4-lock-%010d", i*7919%1000))
	}
	b.ReportAllocs()
	for b.Loop() {
		First(children, children[500], "lock-")
	}
}
