package exec_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// promptPauses is a policy that is called on any goroutine, as those of package retry.
type promptPauses struct{ pauses }

func (promptPauses) Prompt() bool { return true }

// stepped is an operation whose attempts after a lost answer have several requests.
type stepped struct {
	*steps
	begin func()
}

func (o *stepped) Begin() {
	if o.begin != nil && o.Attempts() > 1 {
		o.begin()
	}
	o.steps.Begin()
}

func (o *stepped) HasSteps() bool { return true }

func newStepped(begin func(), paths ...string) *stepped {
	o := &stepped{steps: newSteps(paths...), begin: begin}
	o.Protocol = o
	return o
}

// Both answers are lost. The pauses of the retries end without a connection, which comes up at that moment: after wake
// has looked for one, before it begins the second operation.
func TestRetryOfSeveralRequestsStaysBehindOlderOneWhenConnectionComesAtItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, promptPauses{everySecond(5)}, true)
		f.server.serve = func(*peer, *request) bool { return true } // no answer
		first := newSteps("/first")
		second := newStepped(func() {
			f.server.down.Store(false)
			for !f.conn.Load().IsConnected() {
				<-time.After(time.Millisecond)
			}
		}, "/second", "/second-b")
		if err := f.Go(t.Context(), &first.Operation); err != nil {
			t.Fatal(err)
		}
		if err := f.Go(t.Context(), &second.Operation); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.server.down.Store(true)
		f.server.serve = nil
		before := len(f.server.paths())
		f.server.cutAll()
		if err := receive(t, first.delivered); err != nil {
			t.Error(err)
		}
		if err := receive(t, second.delivered); err != nil {
			t.Error(err)
		}
		got := f.server.paths()[before:]
		if want := []string{"/first", "/second", "/second-b"}; !slices.Equal(got, want) {
			t.Errorf("the server got %v, want %v", got, want)
		}
	})
}

// The same with two retries of several requests each.
func TestRetriesOfSeveralRequestsKeepTheirOrderWhenConnectionComesAtTheirStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, promptPauses{everySecond(5)}, true)
		f.server.serve = func(*peer, *request) bool { return true } // no answer
		up := func() {
			f.server.down.Store(false)
			for !f.conn.Load().IsConnected() {
				<-time.After(time.Millisecond)
			}
		}
		first, second := newStepped(up, "/first", "/first-b"), newStepped(nil, "/second", "/second-b")
		if err := f.Go(t.Context(), &first.Operation); err != nil {
			t.Fatal(err)
		}
		if err := f.Go(t.Context(), &second.Operation); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.server.down.Store(true)
		f.server.serve = nil
		before := len(f.server.paths())
		f.server.cutAll()
		if err := receive(t, first.delivered); err != nil {
			t.Error(err)
		}
		if err := receive(t, second.delivered); err != nil {
			t.Error(err)
		}
		got := f.server.paths()[before:]
		if want := []string{"/first", "/first-b", "/second", "/second-b"}; !slices.Equal(got, want) {
			t.Errorf("the server got %v, want %v", got, want)
		}
	})
}
