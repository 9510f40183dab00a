package fetch

import "time"

// Bounds of the prefetch: as many items as the consumer takes in a moment, and a number of bytes.
const (
	prefetchTime  = 5 * time.Millisecond
	prefetchBytes = 1 << 20
	slowItem      = 100 * time.Millisecond
)

// prefetch computes how far to claim ahead. It goes further when the consumer would have to wait, and less far when
// another consumer was faster or the consumer is slow.
type prefetch struct {
	limit int // the user's limit
	ahead int

	size    float64       // bytes of an item, on the average
	pace    time.Duration // of the consumer, from an item to the next, on the average
	takenAt time.Time     // when the last item was taken, zero before the first
}

// maxClaimed returns how many items may be claimed before they are delivered.
func (p *prefetch) maxClaimed() int {
	n := p.ahead
	switch {
	case p.pace >= slowItem: // other consumers may be idle
		n = 0
	case p.pace > 0:
		n = min(n, int(prefetchTime/p.pace)+1)
	}
	return min(n, p.maxRead())
}

// maxRead returns how many items may be read before they are delivered, beside the one that is wanted.
func (p *prefetch) maxRead() int {
	if p.size == 0 {
		return 2*p.limit + 1
	}
	return min(2*p.limit+1, int(prefetchBytes/p.size))
}

// consumed records that the consumer is done with an item.
func (p *prefetch) consumed(now time.Time) {
	if !p.takenAt.IsZero() {
		p.pace += (now.Sub(p.takenAt) - p.pace) / 4
	}
}

// taken records that the consumer gets an item.
func (p *prefetch) taken(now time.Time) { p.takenAt = now }

// read records the size of an item.
func (p *prefetch) read(bytes int) {
	if p.size == 0 {
		p.size = float64(bytes)
		return
	}
	p.size += (float64(bytes) - p.size) / 8
}

// missed records that another consumer was faster.
func (p *prefetch) missed() { p.ahead /= 2 }

// waited records that the consumer has waited for an answer.
func (p *prefetch) waited() { p.ahead = min(2*p.ahead+1, p.limit) }
