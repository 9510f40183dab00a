package builders_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gocurator/curator/builders"
)

// Java's withTtl takes milliseconds: as they stand they are nanoseconds here.
func TestCreateSaysThatATTLHasNoUnit(t *testing.T) {
	t.Parallel()
	client, _ := setUp(t)
	const want = "TTL 60µs is below a millisecond: durations are in Go's units, did you mean 60000*time.Millisecond?"
	for _, w := range ways {
		err := w.create(t, client.Create().WithMode(builders.PersistentWithTTL).WithTTL(60_000), "/n", nil).Err
		if !errors.Is(err, builders.ErrBadArguments) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", w, err, want)
		}
	}
}
