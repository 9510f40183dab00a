package shared_test

import (
	"testing"

	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/shared"
)

// requests counts the requests of these names that the client has sent.
func (s *scene) requests(names ...string) (n int) {
	for _, e := range s.place.Faults().Trace() {
		for _, name := range names {
			if !e.Reply && e.Op == name {
				n++
			}
		}
	}
	return n
}

// The end of a loop, and Close, leave neither a watch nor a listener of the client.
func TestValuesLeaveNothingBehind(t *testing.T) {
	for name, follow := range map[string]func(s *scene){
		"Watch": func(s *scene) {
			for _, err := range s.limits(s.client).Watch(s.ctx) {
				s.must(err)
				break
			}
		},
		"SharedValue": func(s *scene) {
			v := shared.NewSharedValue(s.client, path, nil)
			s.must(v.Start(s.ctx))
			s.must(v.Close())
		},
		"SharedCount": func(s *scene) {
			v := shared.NewSharedCount(s.client, path, 1)
			s.must(v.Start(s.ctx))
			s.must(v.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				if name == "Watch" {
					s.write(`{"Rate":1}`)
				}
				before := hook.StateListeners(s.client)
				const rounds = 3
				for range rounds {
					follow(s)
				}
				testenv.Eventually(s, func() bool { return hook.StateListeners(s.client) == before }, "no listener is left")
				testenv.Eventually(s, func() bool {
					return s.requests("removeWatches", "checkWatches") >= rounds
				}, "no watch is left")
			})
		})
	}
}
