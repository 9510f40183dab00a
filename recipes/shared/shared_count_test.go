package shared_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/shared"
)

// Java writes the same.
var goldenCounts = map[int]string{
	7: "\x00\x00\x00\x07", -2: "\xff\xff\xff\xfe", 0: "\x00\x00\x00\x00",
	math.MaxInt32: "\x7f\xff\xff\xff", math.MinInt32: "\x80\x00\x00\x00",
}

func (s *scene) startCount(seed int) *shared.SharedCount {
	s.Helper()
	c := shared.NewSharedCount(s.client, path, seed)
	s.must(c.Start(s.ctx))
	s.Cleanup(func() { s.must(c.Close()) })
	return c
}

func TestSharedCountHasBytesOfJava(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		c := s.startCount(10)
		if data, _ := s.stored(); data != "\x00\x00\x00\x0a" || c.Count() != 10 {
			t.Errorf("the seed is %x, the count %d", data, c.Count())
		}
		for n, want := range goldenCounts {
			s.must(c.SetCount(s.ctx, n))
			if data, _ := s.stored(); data != want || c.Count() != n {
				t.Errorf("%d is %x, the count %d", n, data, c.Count())
			}
		}
		for n, data := range goldenCounts {
			before := c.VersionedValue()
			if set, err := c.TrySetCount(s.ctx, before, 1); !set || err != nil || c.Count() != 1 {
				t.Errorf("set %d: %t, %v", c.Count(), set, err)
			}
			if set, err := c.TrySetCount(s.ctx, before, 1); set || err != nil {
				t.Errorf("set again: %t, %v", set, err)
			}
			counts := make(chan int, 1)
			remove := c.AddListener(func(_ context.Context, v shared.VersionedValue[int]) {
				if v.Value == n && v.Version > before.Version {
					counts <- v.Value
				}
			})
			s.write(data + "more")
			if got := <-counts; got != c.Count() {
				t.Errorf("the count is %d after %d", c.Count(), got)
			}
			remove()
		}
	})
}

func TestSharedCountOfTooFewBytes(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.write("12a")
		c := shared.NewSharedCount(s.client, path, 5)
		s.wantError(c.Start(s.ctx), shared.ErrShortData)
		s.write(goldenCounts[7])
		s.must(c.Start(s.ctx))
		defer c.Close() //nolint:errcheck // always nil
		reported := make(chan error, 1)
		s.client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { reported <- e.Err })
		counts := make(chan int, 10)
		c.AddListener(func(_ context.Context, v shared.VersionedValue[int]) { counts <- v.Value })
		s.write("")
		s.wantError(<-reported, shared.ErrShortData)
		s.wantError(c.Err(), shared.ErrShortData)
		if c.Count() != 7 {
			t.Errorf("the count is %d", c.Count())
		}
		s.must(c.SetCount(s.ctx, 8))
		if n := <-counts; n != 8 || c.Err() != nil {
			t.Errorf("the listener gets %d, the error is %v", n, c.Err())
		}
	})
}

// A caller tries again while the answer is false: it would send no request and never end.
func TestSharedCountTrySetCountOfNoCountIsError(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]error{
		"": shared.ErrShortData, "12a": shared.ErrShortData, "123": shared.ErrText, "1234": shared.ErrText,
	} {
		for name, heard := range map[string]bool{"heard of": true, "not heard of": false} {
			t.Run(fmt.Sprintf("%q %s", data, name), func(t *testing.T) {
				t.Parallel()
				inScene(t, func(s *scene) {
					c := s.startCount(5)
					before := c.VersionedValue()
					changed := c.Changed()
					s.write(data)
					if heard {
						<-changed
					}
					set, err := c.TrySetCount(s.ctx, before, 6)
					if set {
						t.Error("it is set")
					}
					s.wantError(err, want)
					if stored, _ := s.stored(); stored != data {
						t.Errorf("the node has %q", stored)
					}
					s.must(c.SetCount(s.ctx, 7))
					if set, err := c.TrySetCount(s.ctx, c.VersionedValue(), 8); !set || err != nil {
						t.Errorf("set is %t, the error is %v", set, err)
					}
				})
			})
		}
	}
}

// kazoo's Counter writes the digits of a number.
func TestSharedCountTextOfNumberIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"7", "12", "123", "-7", "7\n", "1.5", "1234", "-123", "12345", "12345678", "1.25", "1234\n",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				s.write(text)
				c := shared.NewSharedCount(s.client, path, 5)
				s.wantError(c.Start(s.ctx), shared.ErrText)
				if stored, _ := s.stored(); stored != text {
					t.Errorf("the node has %q", stored)
				}
				java := shared.NewSharedCount(s.client, path, 5, shared.WithoutTextCheck())
				if len(text) < 4 {
					s.wantError(java.Start(s.ctx), shared.ErrShortData)
					return
				}
				s.must(java.Start(s.ctx))
				defer java.Close() //nolint:errcheck // always nil
				if got, want := java.Count(), int(int32(binary.BigEndian.Uint32([]byte(text)))); got != want || java.Err() != nil {
					t.Errorf("the count is %d, not %d; %v", got, want, java.Err())
				}
			})
		})
	}
}

// Start has met data that is no count. SetCount replaces it, and then Start succeeds.
func TestSharedCountSetCountReplacesWhatStartRefuses(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]error{"": shared.ErrShortData, "12a": shared.ErrShortData, "1234": shared.ErrText} {
		t.Run(data, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				s.write(data)
				c := shared.NewSharedCount(s.client, path, 5)
				s.wantError(c.SetCount(s.ctx, 7), shared.ErrNotStarted)
				s.wantError(c.Start(s.ctx), want)
				s.wantError(c.SetCount(s.ctx, math.MaxInt32+1), framework.ErrBadArguments)
				for _, n := range []int{7, 8} {
					s.must(c.SetCount(s.ctx, n))
					if stored, _ := s.stored(); stored != "\x00\x00\x00"+string(rune(n)) {
						t.Errorf("the node has %q", stored)
					}
				}
				s.must(c.Start(s.ctx))
				if c.Count() != 8 || c.Err() != nil {
					t.Errorf("the count is %d, the error %v", c.Count(), c.Err())
				}
				s.must(c.SetCount(s.ctx, 9))
				s.must(c.Close())
				s.wantError(c.SetCount(s.ctx, 10), shared.ErrClosed)
				refused := shared.NewSharedCount(s.client, path, 5)
				s.write(data)
				s.wantError(refused.Start(s.ctx), want)
				s.must(refused.Close())
				s.wantError(refused.SetCount(s.ctx, 10), shared.ErrClosed)
			})
		})
	}
}

func TestSharedCountWithBytesOfTextIsNotWritten(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		const digits = 0x31323334
		s.wantError(shared.NewSharedCount(s.client, path, digits).Start(s.ctx), shared.ErrText)
		c := s.startCount(digits - 0x30)
		s.wantError(c.SetCount(s.ctx, digits), shared.ErrText)
		_, err := c.TrySetCount(s.ctx, c.VersionedValue(), digits)
		s.wantError(err, shared.ErrText)
		if data, _ := s.stored(); data != "123\x04" {
			t.Errorf("the node has %q", data)
		}
	})
	inScene(t, func(s *scene) {
		c := shared.NewSharedCount(s.client, path, 1, shared.WithoutTextCheck())
		s.must(c.Start(s.ctx))
		defer c.Close() //nolint:errcheck // always nil
		s.must(c.SetCount(s.ctx, 0x31323334))
		if data, _ := s.stored(); data != "1234" || c.Count() != 0x31323334 {
			t.Errorf("the node has %q, the count is %d", data, c.Count())
		}
	})
}

func TestSharedCountOfTooManyBits(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.wantError(shared.NewSharedCount(s.client, path, math.MaxInt32+1).Start(s.ctx), framework.ErrBadArguments)
		c := s.startCount(1)
		s.wantError(c.SetCount(s.ctx, math.MinInt32-1), framework.ErrBadArguments)
		_, err := c.TrySetCount(s.ctx, c.VersionedValue(), math.MaxInt32+1)
		s.wantError(err, framework.ErrBadArguments)
		_, err = c.TrySetCount(s.ctx, shared.NewSharedCount(s.client, path, 1).VersionedValue(), 2)
		s.wantError(err, shared.ErrIllegalVersion)
	})
}

// In Java: TestInterProcessSemaphore.testThreadedLeaseIncrease (CURATOR-75).
func TestSemaphoreFollowsSharedCount(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		c := s.startCount(0)
		semaphore := locks.NewInterProcessSemaphoreV2(s.client, "/slots", 0, locks.WithLeaseCount(c))
		acquired := make(chan error, 1)
		go func() {
			_, err := semaphore.Acquire(s.ctx)
			acquired <- err
		}()
		s.write(goldenCounts[7]) // as another process
		s.must(<-acquired)
		leases, err := semaphore.AcquireN(s.ctx, 6)
		s.must(err)
		if len(leases) != 6 {
			t.Errorf("%d leases", len(leases))
		}
	})
}

func TestSharedCountConnectionStates(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		c := s.startCount(1)
		states := make(chan framework.ConnectionState, 10)
		remove := c.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) { states <- state })
		s.cutOff()()
		for _, want := range []framework.ConnectionState{framework.Suspended, framework.Reconnected} {
			if got := <-states; got != want {
				t.Errorf("%v in place of %v", got, want)
			}
		}
		remove()
	})
}
