package testenv_test

import (
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

func TestSize(t *testing.T) {
	for _, tt := range []struct{ server, size, want string }{
		{"", "", "memory"},
		{"real", "", "real"},
		{"", "long", "long"},
		{"real", "long", "long"},
		{"real", "longer", "real"},
	} {
		t.Setenv("CURATOR_TEST_SERVER", tt.server)
		t.Setenv("CURATOR_TEST_SIZE", tt.size)
		if got := testenv.Size("memory", "real", "long"); got != tt.want || testenv.Long() != (tt.want == "long") {
			t.Errorf("on server %q, size %q: %s, long: %t", tt.server, tt.size, got, testenv.Long())
		}
	}
}
