package wire

// ring is a first-in first-out queue of the requests in flight.
type ring struct {
	slots      []*Request // the length is 0 or a power of two
	head, tail uint
}

func (q *ring) len() int { return int(q.tail - q.head) }

func (q *ring) push(r *Request) {
	if q.len() == len(q.slots) {
		slots := make([]*Request, max(2*len(q.slots), 16))
		for i := range q.len() {
			slots[i] = q.slots[(q.head+uint(i))&uint(len(q.slots)-1)]
		}
		q.head, q.tail, q.slots = 0, uint(q.len()), slots
	}
	q.slots[q.tail&uint(len(q.slots)-1)] = r
	q.tail++
	r.inFlight = true
}

// peek returns the oldest request, or nil.
func (q *ring) peek() *Request {
	if q.len() == 0 {
		return nil
	}
	return q.slots[q.head&uint(len(q.slots)-1)]
}

// at returns the request with this index, from the oldest one on.
func (q *ring) at(i int) *Request { return q.slots[(q.head+uint(i))&uint(len(q.slots)-1)] }

// pop removes the oldest request and returns it, or nil.
func (q *ring) pop() *Request {
	r := q.peek()
	if r != nil {
		q.slots[q.head&uint(len(q.slots)-1)] = nil
		q.head++
		r.inFlight = false
	}
	return r
}

// list is a first-in first-out queue of the requests that wait to be encoded. Each of them can be removed.
type list struct {
	first, last *Request
	n           int
}

func (q *list) len() int { return q.n }

func (q *list) push(r *Request) {
	r.waits, r.prev, r.next = true, q.last, nil
	if q.last == nil {
		q.first = r
	} else {
		q.last.next = r
	}
	q.last = r
	q.n++
}

// remove removes r and reports whether it was in the list.
func (q *list) remove(r *Request) bool {
	if !r.waits {
		return false
	}
	if r.prev == nil {
		q.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		q.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.waits, r.prev, r.next = false, nil, nil
	q.n--
	return true
}

// takeAll empties q and returns its requests in order.
func (q *list) takeAll() []*Request {
	if q.n == 0 {
		return nil
	}
	all := make([]*Request, 0, q.n)
	for r := q.first; r != nil; r = q.first {
		q.remove(r)
		all = append(all, r)
	}
	return all
}
