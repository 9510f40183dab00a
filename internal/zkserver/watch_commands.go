package zkserver

import (
	"fmt"
	"strings"
)

// The four-letter words about watches count those on data only.

func (m *Member) writeWatchSummary(b *strings.Builder) {
	t := m.dataWatches
	fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d\n", len(t.byConn), len(t.byPath), t.count())
}

func (m *Member) writeWatchesByConnection(b *strings.Builder) {
	for _, c := range m.connections() {
		if paths := m.dataWatches.byConn[c]; len(paths) > 0 {
			fmt.Fprintf(b, "%#x\n", c.session.id)
			for _, path := range sortedKeys(paths) {
				fmt.Fprintf(b, "\t%s\n", path)
			}
		}
	}
	b.WriteByte('\n')
}

func (m *Member) writeWatchesByPath(b *strings.Builder) {
	paths := map[string]struct{}{}
	for path := range m.dataWatches.byPath {
		paths[path] = struct{}{}
	}
	for _, path := range sortedKeys(paths) {
		fmt.Fprintf(b, "%s\n", path)
		for _, c := range m.connections() {
			if m.dataWatches.byPath[path][c] != 0 {
				fmt.Fprintf(b, "\t%#x\n", c.session.id)
			}
		}
	}
	b.WriteByte('\n')
}
