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
	begin    func() // called at the start of a retry, if not nil
	isSingle bool   // it has one request
}

func (o *stepped) Begin() {
	if o.begin != nil && o.Attempts() > 1 {
		o.begin()
	}
	o.steps.Begin()
}

func (o *stepped) HasSteps() bool { return !o.isSingle }

func newStepped(begin func(), paths ...string) *stepped {
	o := &stepped{steps: newSteps(paths...), begin: begin}
	o.Protocol = o
	return o
}

// Both answers are lost. The pauses of the retries end without a connection, which comes up at that moment: after wake
// has looked for one, while it begins one of them.
func TestRetryOfSeveralRequestsKeepsItsPlaceWhenConnectionComesAtItsStart(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second []string
		atFirst       bool // the connection comes as the first one begins
	}{
		"behind one request":      {[]string{"/first"}, []string{"/second", "/second-b"}, false},
		"behind several requests": {[]string{"/first", "/first-b"}, []string{"/second", "/second-b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, promptPauses{everySecond(5)}, true)
				f.server.serve = func(*peer, *request) bool { return true } // no answer
				connects := func() {
					f.server.down.Store(false)
					for !f.conn.Load().IsConnected() {
						<-time.After(time.Millisecond)
					}
				}
				first, second := newStepped(nil, tt.first...), newStepped(nil, tt.second...)
				if first.isSingle = len(tt.first) == 1; tt.atFirst {
					first.begin = connects
				} else {
					second.begin = connects
				}
				for _, op := range []*stepped{first, second} {
					if err := f.Go(t.Context(), &op.Operation); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				f.server.down.Store(true)
				f.server.serve = nil
				before := len(f.server.paths())
				f.server.cutAll()
				for _, op := range []*stepped{first, second} {
					if err := receive(t, op.delivered); err != nil {
						t.Error(err)
					}
				}
				got, want := f.server.paths()[before:], slices.Concat(tt.first, tt.second)
				if !slices.Equal(got, want) {
					t.Errorf("the server got %v, want %v", got, want)
				}
			})
		})
	}
}
