package waitqueue

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
)

func TestSerialRunsInOrderAfterGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Serial
		var got []int
		for i := range 5 {
			s.Do(func() {
				got = append(got, i)
				if i == 2 {
					runtime.Goexit()
				}
			})
		}
		s.Wait(t.Context(), 0)
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
		if n := s.Running(); n != 0 {
			t.Errorf("%d runs", n)
		}
	})
}

func TestSerialWaitExceptsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Serial
		var got []string
		hold := make(chan struct{})
		s.Do(func() { s.Wait(t.Context(), s.Running()); got = append(got, "caller") })
		s.Do(func() { <-hold; got = append(got, "second") })
		waited := make(chan struct{})
		go func() { s.Wait(t.Context(), 0); close(waited) }()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		s.Wait(ended, 0)
		synctest.Wait()
		select {
		case <-waited:
			t.Error("it has not waited")
		default:
		}
		close(hold)
		<-waited
		if want := []string{"caller", "second"}; !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})
}
