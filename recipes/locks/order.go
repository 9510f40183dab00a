package locks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// sequence returns the number that the server gave to a node with this name in front of it. Nodes of other kinds have
// none.
func sequence(node, name string) (int32, bool) {
	i := strings.LastIndex(node, name)
	if i < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(node[i+len(name):], 10, 32)
	return int32(n), err == nil
}

// before reports whether a was given before b. The server counts on from the largest number to the smallest, so the
// difference tells, not the numbers.
func before(a, b int32) bool { return a-b < 0 }

// predecessor finds own among the children of a lock, and the one that came next before it: "" if own is the first. One
// pass, no sorting: there may be thousands.
func predecessor(children []string, name, own string) (pred string, found bool) {
	mine, ok := sequence(own, name)
	if !ok {
		return "", false
	}
	var last int32
	for _, child := range children {
		if child == own {
			found = true
			continue
		}
		n, ok := sequence(child, name)
		if !ok || !before(n, mine) {
			continue
		}
		if pred == "" || before(last, n) {
			pred, last = child, n
		}
	}
	return pred, found
}

// sorted returns the children of a lock in the order in which they were given their numbers, others behind.
func sorted(children []string, name string) []string {
	out := slices.Clone(children)
	slices.SortStableFunc(out, func(a, b string) int {
		na, oka := sequence(a, name)
		nb, okb := sequence(b, name)
		switch {
		case oka && okb && na != nb:
			if before(na, nb) {
				return -1
			}
			return 1
		case oka != okb && oka:
			return -1
		case oka != okb:
			return 1
		}
		return cmp.Compare(a, b)
	})
	return out
}
