package interop_test

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/shared"
)

const sharedPath = "/settings/color"

func (j *peer) sharedStart(seed string) {
	j.t.Helper()
	j.must("sharedStart", interop.Args{"name": "color", "path": sharedPath, "seed": interop.Bytes(seed)}, nil)
}

func (j *peer) sharedGet() (value interop.Shared) {
	j.t.Helper()
	j.must("sharedGet", interop.Args{"name": "color"}, &value)
	return value
}

// awaitValue waits until Java has a value, and returns it with its version.
func (j *peer) awaitValue(want string) (value interop.Shared) {
	j.t.Helper()
	testenv.Eventually(j.t, func() bool {
		value = j.sharedGet()
		return string(value.Value) == want
	}, fmt.Sprintf("Java has the value %q", want))
	return value
}

func (j *peer) trySetValue(data string) bool {
	j.t.Helper()
	return j.truth("sharedTrySet", interop.Args{"name": "color", "data": interop.Bytes(data)})
}

func TestSharedValueOfBoth(t *testing.T) {
	t.Parallel()
	for name, javaFirst := range map[string]bool{"Java first": true, "Go first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			j, client := startBoth(t)
			seed := "of Go\x00\xff"
			if javaFirst {
				seed = "of Java\x00\xff"
				j.sharedStart(seed)
			}
			v := shared.NewSharedValue(client, sharedPath, []byte("of Go\x00\xff"))
			if err := v.Start(ctx); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = v.Close() })
			if !javaFirst {
				j.sharedStart("of Java\x00\xff")
			}
			awaitGo := func(want string) {
				t.Helper()
				testenv.Eventually(t, func() bool { return string(v.Value()) == want }, fmt.Sprintf("Go has the value %q", want))
			}
			awaitGo(seed)
			if got := j.awaitValue(seed); got.Version != int(v.VersionedValue().Version) {
				t.Errorf("Java has the version %d, Go %+v", got.Version, v.VersionedValue())
			}
			if data, err := client.GetData().ForPath(ctx, sharedPath); string(data) != seed || err != nil {
				t.Errorf("the node has %q, %v, want %q", data, err, seed)
			}
			old := v.VersionedValue()
			for _, value := range []string{"red", "", string(bytes.Repeat([]byte{0, 255}, 10_000))} {
				j.must("sharedSet", interop.Args{"name": "color", "data": interop.Bytes(value)}, nil)
				awaitGo(value)
				if set, err := v.TrySetValue(ctx, old, []byte("late")); set || err != nil {
					t.Errorf("what Java has set is written over: %t, %v", set, err)
				}
				j.awaitValue(value)
				next := value + ", too"
				if set, err := v.TrySetValue(ctx, v.VersionedValue(), []byte(next)); !set || err != nil {
					t.Errorf("set: %t, %v", set, err)
				}
				if j.trySetValue("late") {
					t.Error("Java has written over what Go has set")
				}
				j.awaitValue(next)
				if !j.trySetValue("of Java") {
					t.Error("Java has not set it")
				}
				awaitGo("of Java")
				if err := v.SetValue(ctx, []byte(value)); err != nil {
					t.Error(err)
				}
				j.awaitValue(value)
			}
			j.must("sharedClose", interop.Args{"name": "color"}, nil)
		})
	}
}

// Go and Java raise the same number by comparison. None of their writes is lost.
func TestSharedValueRaisedByBoth(t *testing.T) {
	t.Parallel()
	const each = 40
	ctx := testenv.Context(t)
	j, client := startBoth(t)
	j.sharedStart("0")
	v := shared.NewSharedValue(client, sharedPath, []byte("0"))
	if err := v.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	raised := func(value []byte) []byte {
		n, err := strconv.Atoi(string(value))
		if err != nil {
			t.Error(err)
		}
		return []byte(strconv.Itoa(n + 1))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for done := 0; done < each && ctx.Err() == nil; {
			now := v.VersionedValue()
			set, err := v.TrySetValue(ctx, now, raised(now.Value))
			if err != nil {
				t.Error(err)
				return
			}
			if set {
				done++
			}
		}
	})
	for done := 0; done < each && ctx.Err() == nil; {
		if j.trySetValue(string(raised(j.sharedGet().Value))) {
			done++
		}
	}
	wg.Wait()
	want := strconv.Itoa(2 * each)
	j.awaitValue(want)
	if data, err := client.GetData().ForPath(ctx, sharedPath); string(data) != want || err != nil {
		t.Errorf("the node has %q, %v, want %s", data, err, want)
	}
}
