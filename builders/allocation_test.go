package builders_test

import (
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// A foreground operation costs the object of its result alone: its memory and its channel are used again. The count
// is that of the whole process, so it is the least of several rounds that counts: a ping or the garbage collector may
// add to one.
func TestForegroundOperationsAllocateLittle(t *testing.T) {
	testenv.RequireReal(t) // it counts what this process allocates: a server has to be in another
	client, tr := setUp(t)
	tr.make("/n", "data")
	ctx := testenv.Context(t)
	data := []byte("data")
	create, del := client.Create(), client.Delete()
	tests := []struct {
		name string
		run  func() error
		want float64
	}{
		{"getData", func() error { _, err := client.GetData().ForPath(ctx, "/n"); return err }, 1},
		{"exists", func() error { _, err := client.CheckExists().ForPath(ctx, "/n"); return err }, 1},
		{"exists, absent", func() error { _, err := client.CheckExists().ForPath(ctx, "/x"); return err }, 0},
		{"setData", func() error { _, err := client.SetData().ForPath(ctx, "/n", data); return err }, 1},
		{"create and delete", func() error {
			if _, err := create.ForPath(ctx, "/c", data); err != nil {
				return err
			}
			return del.ForPath(ctx, "/c")
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			least := -1.0
			for range 5 {
				n := testing.AllocsPerRun(100, func() {
					if err := tt.run(); err != nil {
						t.Fatal(err)
					}
				})
				if least < 0 || n < least {
					least = n
				}
			}
			most := tt.want
			if underRace {
				most++
			}
			if least < tt.want || least > most {
				t.Errorf("%v allocations, want %v to %v", least, tt.want, most)
			}
		})
	}
}
