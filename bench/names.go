package main

import "strconv"

// names gives a series of paths. They are made some at a time, so that the measurement of an operation hardly
// counts the making of its path.
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

// next gives the next path of the series.
func (n *names) next() string {
	if len(n.ready) == 0 {
		n.make()
	}
	name := n.ready[0]
	n.ready = n.ready[1:]
	n.given++
	return name
}

// again gives all paths that were given, in the same order.
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
