package wire

// queue is a first-in first-out ring of requests.
type queue struct {
	ring       []*Request // its length is 0 or a power of two
	head, tail uint
}

func (q *queue) len() int { return int(q.tail - q.head) }

func (q *queue) at(i int) *Request { return q.ring[(q.head+uint(i))&uint(len(q.ring)-1)] }

func (q *queue) push(r *Request) {
	if q.len() == len(q.ring) {
		ring := make([]*Request, max(2*len(q.ring), 16))
		for i := range q.len() {
			ring[i] = q.at(i)
		}
		q.head, q.tail, q.ring = 0, uint(q.len()), ring
	}
	q.ring[q.tail&uint(len(q.ring)-1)] = r
	q.tail++
}

// remove takes r out wherever it is.
func (q *queue) remove(r *Request) bool {
	for i := range q.len() {
		if q.at(i) != r {
			continue
		}
		for ; i < q.len()-1; i++ {
			q.ring[(q.head+uint(i))&uint(len(q.ring)-1)] = q.at(i + 1)
		}
		q.tail--
		q.ring[q.tail&uint(len(q.ring)-1)] = nil
		return true
	}
	return false
}

// peek returns the oldest, or nil.
func (q *queue) peek() *Request {
	if q.len() == 0 {
		return nil
	}
	return q.at(0)
}

// pop removes the oldest and returns it, or nil.
func (q *queue) pop() *Request {
	r := q.peek()
	if r != nil {
		q.ring[q.head&uint(len(q.ring)-1)] = nil
		q.head++
	}
	return r
}
