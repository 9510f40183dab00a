package dispatch_test

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/dispatch"
)

func TestLibraryTasksDoNotWaitForProgramTask(t *testing.T) {
	for name, end := range map[string]func(release <-chan struct{}){
		"blocks": func(release <-chan struct{}) { <-release }, "exits": func(<-chan struct{}) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := dispatch.StartLanes()
				release := make(chan struct{})
				l.Push(dispatch.Func(func() { end(release) }))
				synctest.Wait()
				ran := 0
				for range 3 {
					l.PushLibrary(dispatch.Func(func() { ran++ }))
				}
				synctest.Wait()
				if ran != 3 {
					t.Errorf("%d ran, want 3", ran)
				}
				close(release)
				if !l.Close(time.Second) {
					t.Error("some tasks have not run")
				}
			})
		})
	}
}

func TestProgramTaskBeginsAfterEarlierLibraryTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dispatch.StartLanes()
		hold := make(chan struct{})
		var order []string
		l.PushLibrary(dispatch.Func(func() { <-hold; order = append(order, "library") }))
		for _, name := range []string{"one", "two"} {
			l.Push(dispatch.Func(func() { order = append(order, name) }))
		}
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("%v ran", order)
		}
		close(hold)
		synctest.Wait()
		l.Push(dispatch.Func(func() { order = append(order, "three") }))
		if !l.Close(time.Second) {
			t.Error("some tasks have not run")
		}
		if want := []string{"library", "one", "two", "three"}; !slices.Equal(order, want) {
			t.Errorf("order %v", order)
		}
	})
}

func TestClosedLanesTakeNothing(t *testing.T) {
	l := dispatch.StartLanes()
	if !l.Close(time.Minute) {
		t.Error("no task has to run")
	}
	l.Push(dispatch.Func(func() { t.Error("ran") }))
	l.PushProgram(dispatch.Func(func() { t.Error("ran") }))
	l.PushLibrary(dispatch.Func(func() { t.Error("ran") }))
}

// The library's lane is busy beyond the limit. The program's tasks behind it still run.
func TestLanesRunTasksThatCloseHasNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dispatch.StartLanes()
		l.PushLibrary(dispatch.Func(func() { <-time.After(2 * time.Second) }))
		var ran atomic.Int32
		for range 10 {
			l.Push(dispatch.Func(func() { ran.Add(1) }))
		}
		if l.Close(time.Second) {
			t.Error("closed in time")
		}
		<-time.After(time.Minute)
		if n := ran.Load(); n != 10 {
			t.Errorf("%d of 10 accepted tasks have run", n)
		}
	})
}
