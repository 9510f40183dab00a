package interop_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
)

// What differs from node to node.
var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	numbers = regexp.MustCompile(`\d{10}$`)
)

// nodeProperties are the properties of a node that do not differ between runs.
type nodeProperties struct {
	Path, Data string
	Ephemeral  bool
	ACL        string
}

func (m *meeting) properties() (all []nodeProperties) {
	m.t.Helper()
	for _, n := range m.nodes("/") {
		path := numbers.ReplaceAllString(uuids.ReplaceAllString(n.path, "<uuid>"), "<number>")
		all = append(all, nodeProperties{path, string(n.data), n.stat.EphemeralOwner != 0, fmt.Sprint(n.acl)})
	}
	slices.SortFunc(all, func(a, b nodeProperties) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func ephemerals(all []nodeProperties) (n int) {
	for _, one := range all {
		if one.Ephemeral {
			n++
		}
	}
	return n
}

// propertiesOf has a side by itself hold a lock and wait for it, and returns the properties of all nodes when they are
// settled. Then each container has a node: an empty one may be deleted.
func (m *meeting) propertiesOf(
	p *peer, kinds rivals, settled func(held, all []nodeProperties) bool,
) (all []nodeProperties) {
	m.t.Helper()
	got := m.take(m.later(kinds.held.of(p)))
	held := m.properties()
	waiting := m.later(kinds.wanted.of(p))
	testenv.Eventually(m.t, func() bool {
		all = m.properties()
		return settled(held, all)
	}, "one holds the lock and one waits for it")
	m.release(got)
	m.release(m.take(waiting))
	m.clear()
	return all
}

func TestLocksOfGoAndJavaLookTheSame(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	for _, kinds := range allRivals {
		t.Run(kinds.name, func(t *testing.T) {
			t.Parallel()
			m := meetApart(t, 1)
			theirs := m.propertiesOf(m.peers[1], kinds, func(held, all []nodeProperties) bool {
				return ephemerals(all) == ephemerals(held)+kinds.wanted.nodes
			})
			for range kinds.wanted.nodes - 1 { // Go has no node among the leases while it waits for one
				i := slices.IndexFunc(theirs, func(l nodeProperties) bool { return strings.Contains(l.Path, "-lease-") })
				theirs = slices.Delete(theirs, i, i+1)
			}
			var diff string
			defer func() {
				if diff != "" {
					t.Logf("(-Java +Go)\n%s", diff)
				}
			}()
			m.propertiesOf(m.peers[0], kinds, func(_, all []nodeProperties) bool { // a turn is given on in the background
				diff = cmp.Diff(theirs, all)
				return diff == ""
			})
		})
	}
}
