package testenv

import (
	"fmt"
	"testing"

	"github.com/gocurator/curator/curatortest"
)

// EachRequest runs test for each request that a case sends, counted from 0, until test reports that there was no such
// request. Each run is a subtest, so its clients and servers end with it.
func EachRequest(t *testing.T, test func(t *testing.T, k int) (hit bool)) {
	t.Helper()
	for k, hit := 0, true; hit; k++ {
		t.Run(fmt.Sprint("request ", k), func(t *testing.T) {
			hit = false // also if the test ends early
			hit = test(t, k)
		})
	}
}

// EachCut is EachRequest, first with a connection that is cut before each request, then with one that is cut behind it.
func EachCut(t *testing.T, test func(t *testing.T, action curatortest.Action, k int) (hit bool)) {
	t.Helper()
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
		t.Run(action.String(), func(t *testing.T) {
			EachRequest(t, func(t *testing.T, k int) bool {
				t.Helper()
				return test(t, action, k)
			})
		})
	}
}
