package main

import "strconv"

// names is a series of paths. It makes many at a time, so that they cost little in the measurement of an operation.
type names struct {
	prefix string
	given  int
	ready  []string
}

const namesAtOnce = 64

func newNames(prefix string) *names {
	n := &names{prefix: prefix}
	n.make()
	return n
}

// next returns the next path of the series.
func (n *names) next() string {
	if len(n.ready) == 0 {
		n.make()
	}
	name := n.ready[0]
	n.ready = n.ready[1:]
	n.given++
	return name
}

// again calls take for all earlier paths of the series, in order.
func (n *names) again(take func(path string) error) error {
	repeat := newNames(n.prefix)
	for range n.given {
		if err := take(repeat.next()); err != nil {
			return err
		}
	}
	return nil
}

// make makes the next paths, out of one string.
func (n *names) make() {
	ends := make([]int, namesAtOnce)
	b := make([]byte, 0, namesAtOnce*(len(n.prefix)+8))
	for i := range ends {
		b = strconv.AppendInt(append(b, n.prefix...), int64(n.given+i), 10)
		ends[i] = len(b)
	}
	text, start := string(b), 0
	n.ready = make([]string, namesAtOnce)
	for i, end := range ends {
		n.ready[i] = text[start:end]
		start = end
	}
}
