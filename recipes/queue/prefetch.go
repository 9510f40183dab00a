package queue

import "time"

// How much is claimed ahead of the consumer: what it takes in a moment, and no more than some bytes.
const (
	prefetchTime  = 5 * time.Millisecond
	prefetchBytes = 1 << 20
	slowItem      = 100 * time.Millisecond
)

// prefetch says how far to claim ahead: when the consumer would have to wait further, when another consumer was faster,
// or items lie claimed and unused, less far.
type prefetch struct {
	limit int // of the user
	ahead int

	size    float64       // bytes of an item, on the average
	pace    time.Duration // of the consumer, from an item to the next, on the average
	isPaced bool
	takenAt time.Time // when the last item was taken, zero before the first
}

// maxClaimed returns how many items may be claimed and not begun.
func (p *prefetch) maxClaimed() int {
	n := p.ahead
	switch {
	case p.pace >= slowItem: // others may be idle
		n = 0
	case p.pace > 0:
		n = min(n, int(prefetchTime/p.pace)+1)
	}
	return min(n, p.maxRead())
}

// maxRead returns how many items may be read and not begun, beside the one that is wanted.
func (p *prefetch) maxRead() int {
	if p.size == 0 {
		return 2*p.limit + 1
	}
	return min(2*p.limit+1, int(prefetchBytes/p.size))
}

// consumed notes that the consumer is done with an item.
func (p *prefetch) consumed(now time.Time) {
	if p.takenAt.IsZero() {
		return
	}
	took := now.Sub(p.takenAt)
	if !p.isPaced {
		p.pace, p.isPaced = took, true
		return
	}
	p.pace += (took - p.pace) / 4
}

// taken notes that the consumer gets an item.
func (p *prefetch) taken(now time.Time) { p.takenAt = now }

// read notes the size of an item.
func (p *prefetch) read(bytes int) {
	if p.size == 0 {
		p.size = float64(bytes)
		return
	}
	p.size += (float64(bytes) - p.size) / 8
}

// missed notes that another was faster.
func (p *prefetch) missed() { p.ahead /= 2 }

// waited notes that the consumer has waited for an answer.
func (p *prefetch) waited() { p.ahead = min(2*p.ahead+1, p.limit) }

// unused notes that items lie claimed before they are wanted.
func (p *prefetch) unused() { p.ahead = max(p.ahead-1, 0) }
