package interop_test

import (
	"context"
	"encoding/hex"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/shared"
)

// sharedByBoth starts a count of Java and one of Go.
func sharedByBoth(t *testing.T, javaFirst bool) (*peer, *framework.Client, *shared.SharedCount) {
	t.Helper()
	j, client := startBoth(t)
	c := shared.NewSharedCount(client, "/limits/jobs", -2)
	startJavas := func() {
		j.must("countStart", interop.Args{"name": "limit", "path": "/limits/jobs", "seed": 7}, nil)
	}
	if javaFirst {
		startJavas()
	}
	if err := c.Start(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if !javaFirst {
		startJavas()
	}
	return j, client, c
}

func (j *peer) awaitCount(want int) (count interop.Count) {
	j.t.Helper()
	testenv.Eventually(j.t, func() bool {
		j.must("countGet", interop.Args{"name": "limit"}, &count)
		return count.Value == want
	}, "Java has the count")
	return count
}

func awaitShared(ctx context.Context, t *testing.T, c *shared.SharedCount, want int) {
	t.Helper()
	for {
		changed := c.Changed()
		if c.Count() == want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the count is %d, not %d", c.Count(), want)
		}
	}
}

func TestSharedCountOfBoth(t *testing.T) {
	t.Parallel()
	for name, javaFirst := range map[string]bool{"Java first": true, "Go first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			j, client, c := sharedByBoth(t, javaFirst)
			seed, bytes := -2, "fffffffe"
			if javaFirst {
				seed, bytes = 7, "00000007"
			}
			data, err := client.GetData().ForPath(ctx, "/limits/jobs")
			if got := hex.EncodeToString(data); got != bytes || err != nil {
				t.Errorf("the node has %s, %v, want %s", got, err, bytes)
			}
			if c.Count() != seed {
				t.Errorf("the seed is %d", c.Count())
			}
			if got := j.awaitCount(seed); got.Version != int(c.VersionedValue().Version) {
				t.Errorf("Java has the version %d, Go %+v", got.Version, c.VersionedValue())
			}
			old := c.VersionedValue()
			j.must("countSet", interop.Args{"name": "limit", "value": 1 << 30}, nil)
			awaitShared(ctx, t, c, 1<<30)
			if set, err := c.TrySetCount(ctx, old, 1); set || err != nil {
				t.Errorf("what Java has set is written over: %t, %v", set, err)
			}
			j.awaitCount(1 << 30)
			if set, err := c.TrySetCount(ctx, c.VersionedValue(), -1<<31); !set || err != nil {
				t.Errorf("set: %t, %v", set, err)
			}
			if j.truth("countTrySet", interop.Args{"name": "limit", "value": 2}) {
				t.Error("Java has written over what Go has set")
			}
			j.awaitCount(-1 << 31)
			if !j.truth("countTrySet", interop.Args{"name": "limit", "value": 3}) {
				t.Error("Java has not set it")
			}
			awaitShared(ctx, t, c, 3)
		})
	}
}
