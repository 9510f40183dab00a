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

func TestSerialIsCallerOnlyWithinAFunc(t *testing.T) {
	t.Parallel()
	var s, other Serial
	if s.IsCaller() {
		t.Error("the test is a func before there is any")
	}
	within, elsewhere := make(chan bool, 2), make(chan bool, 1)
	s.Do(func() {
		within <- s.IsCaller() && !other.IsCaller()
		go func() { elsewhere <- s.IsCaller() }()
		within <- !<-elsewhere
		runtime.Goexit()
	})
	s.Do(func() { within <- s.IsCaller() }) // on another goroutine
	for range 3 {
		if !<-within {
			t.Error("a wrong answer in a func")
		}
	}
	if s.IsCaller() {
		t.Error("the test is a func")
	}
}
