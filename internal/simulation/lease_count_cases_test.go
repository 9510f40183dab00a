package simulation_test

import "testing"

func TestJudgeOfLeaseCount(t *testing.T) {
	for name, tt := range map[string]struct {
		before []int // the numbers until the waiter reads the last of them
		after  []int // the numbers from then until its grant
		held   int
		want   string
	}{
		"as many as there are":                  {before: []int{1, 3}, held: 2},
		"too many":                              {before: []int{3, 2}, held: 2, want: "3 share what 2 may"},
		"others were granted a larger number":   {before: []int{1}, after: []int{3}, held: 2},
		"the number fell after the read":        {before: []int{3}, after: []int{0, 1}, held: 2},
		"too many, though the number has risen": {before: []int{1}, after: []int{2, 1}, held: 2, want: "3 share what 2 may"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r := newSemaphore("/r", 1)
				count := newLeaseCount(0)
				reader := &countReader{leaseCount: count}
				set := func(numbers []int) {
					for _, n := range numbers {
						count.set(n)
					}
				}
				set(tt.before)
				if got := reader.Count(); got != tt.before[len(tt.before)-1] {
					t.Fatalf("it reads %d", got)
				}
				set(tt.after)
				grant := func(most int) {
					w.judge.granted(&claim{
						resource: r, process: &process{world: w}, owner: w.owners.Add(1), shared: true, context: t.Context(),
						most: most,
					})
				}
				for range tt.held {
					grant(tt.held)
				}
				grant(reader.most())
				checkViolation(t, w, tt.want)
			})
		})
	}
}

func TestLeaseCountChangesAndComesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		strike := func() (what string, undo func()) { return countFaults[0].strike(w, w.random("count")) }
		w.leaseCount = nil
		if what, _ := strike(); what != "" {
			t.Errorf("without a number that changes: %s", what)
		}
		w.leaseCount = newLeaseCount(leases)
		reader := &countReader{leaseCount: w.leaseCount}
		changed := reader.Changed()
		what, undo := strike()
		if <-changed; what == "" {
			t.Error("the number has not changed")
		}
		undo()
		if got := reader.Count(); got != leases {
			t.Errorf("%d leases in the end", got)
		}
	})
}
