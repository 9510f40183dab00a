package waitqueue

import "testing"

func TestCountBeforeOfEachChildIsNumberOfEarlierChildren(t *testing.T) {
	children := []string{
		"__READ__0000000001", "x-lock-0000000002", "lock-0000000003", "lock-0000000004", "other",
		"y-2147483647",
	}
	for own, want := range map[string]int{
		"lock-0000000003":    2,
		"lock-0000000004":    3,
		"__READ__0000000001": 0,
		"no number":          0,
	} {
		if got := countBefore(children, own); got != want {
			t.Errorf("%s: %d, want %d", own, got, want)
		}
	}
}

func TestVerdictOfNodeWithoutPrefixIsZero(t *testing.T) {
	for _, own := range []string{"other", "lease-0000000001", "lock-x"} {
		children := []string{own, "lock-0000000003"}
		if v := First(children, own, "lock-"); v != (Verdict{}) {
			t.Errorf("%s: %+v", own, v)
		}
		if v := FirstAmong(children, own, []string{"lock-"}, nil); v != (Verdict{}) {
			t.Errorf("%s: %+v", own, v)
		}
	}
}
