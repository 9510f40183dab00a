package testenv_test

import (
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

func TestInVirtualTime(t *testing.T) {
	t.Setenv("CURATOR_TEST_SERVER", "")
	began := time.Now()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		time.Sleep(24 * time.Hour)
		conn, err := place.DialContext(t.Context(), "tcp", place.Addr())
		if err != nil || chroot != "" {
			t.Fatalf("chroot %q, error %v", chroot, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	if time.Since(began) > time.Hour {
		t.Error("a day has passed")
	}
}
