package queue

import (
	"math/rand/v2"
	"time"
)

// yielding leaves a new item to a consumer that was faster lately.
type yielding struct {
	losses int           // how often another was faster, since a pause ended and the item was still there
	until  time.Time     // the end of the pause, zero if there is none
	others time.Duration // how long others need to take an item, on the average
}

const (
	yieldPause       = 10 * time.Millisecond
	yieldRandomPause = 40 * time.Millisecond
	maxLossesCounted = 24
	maxTaking        = 250 * time.Millisecond
)

// lost notes that another was faster.
func (y *yielding) lost() { y.losses = min(y.losses+1, maxLossesCounted) }

// taken notes how long another needed to take an item.
func (y *yielding) taken(after time.Duration) { y.others += (min(after, maxTaking) - y.others) / 4 }

// isYielding reports whether to wait with the first item. When a pause ends and the item is still there, nobody was
// faster.
func (y *yielding) isYielding(now time.Time) bool {
	switch {
	case y.losses == 0:
		return false
	case y.until.IsZero():
		most := yieldPause + y.others + rand.N(yieldRandomPause+2*y.others)
		y.until = now.Add(most * time.Duration(1+y.losses/8))
		return true
	case now.Before(y.until):
		return true
	}
	y.losses, y.until = 0, time.Time{}
	return false
}
