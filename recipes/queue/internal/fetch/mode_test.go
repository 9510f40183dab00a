package fetch

import "testing"

func TestModeChanges(t *testing.T) {
	t.Parallel()
	names := []string{"unknown", "listed", "relisting", "empty", "watched", "outdated"}
	all := []mode{unknown, listed, relisting, empty, watched, outdated}
	for change, tt := range map[string]struct {
		do   func(*mode)
		want []mode // for each mode before
	}{
		"doubt": {(*mode).doubt, []mode{unknown, unknown, unknown, unknown, outdated, outdated}},
		"relist": {
			(*mode).relist, []mode{relisting, relisting, relisting, relisting, watched, relisting},
		},
		"an empty list": {func(m *mode) { m.found(0) }, []mode{empty, empty, empty, empty, watched, empty}},
		"a list of one": {func(m *mode) { m.found(1) }, []mode{listed, listed, listed, listed, watched, listed}},
		"watch":         {(*mode).watch, []mode{watched, watched, watched, watched, watched, watched}},
		"unwatch":       {(*mode).unwatch, []mode{unknown, unknown, unknown, unknown, unknown, unknown}},
	} {
		for i, before := range all {
			m := before
			if tt.do(&m); m != tt.want[i] {
				t.Errorf("%s, %s: %s, want %s", names[before], change, names[m], names[tt.want[i]])
			}
		}
	}
}
