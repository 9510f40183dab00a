package produce

import "testing"

func TestBatchIsCutByNumberAndSize(t *testing.T) {
	t.Parallel()
	const half = maxBatchBytes / 2
	for name, tt := range map[string]struct {
		sizes []int
		most  int
		want  int
	}{
		"all":                     {[]int{1, 1, 1}, maxBatchPuts, 3},
		"no more than allowed":    {[]int{1, 1, 1}, 2, 2},
		"no more than fit":        {[]int{1, half, half, 1}, maxBatchPuts, 2},
		"a large put alone":       {[]int{3 * half, 1}, maxBatchPuts, 1},
		"a large put ends it":     {[]int{1, 3 * half, 1}, maxBatchPuts, 1},
		"one for a refused batch": {[]int{1, 1}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var puts []*Put
			for _, n := range tt.sizes {
				x := NewPut("queue-", make([]byte, n))
				puts = append(puts, &x)
			}
			if b := nextBatch(puts, "/queue", tt.most); len(b.puts) != tt.want || cap(b.puts) != tt.want {
				t.Errorf("%d puts, want %d", len(b.puts), tt.want)
			}
		})
	}
}
