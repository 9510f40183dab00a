package waitqueue

// Verdict is the meaning of a list of the queue for one contender.
type Verdict struct {
	Found   bool   // its node exists
	Granted bool   // it has its turn
	Watch   string // the node to wait for without a turn; "" means any change of the queue
}

// First grants the turn to the first contender; each of the others waits for the one before it. It does not sort: a
// queue may have thousands of nodes.
func First(children []string, own string, prefixes ...string) Verdict {
	return FirstAmong(children, own, prefixes, prefixes)
}

// FirstAmong grants the turn to a contender with no rival before it. Other contenders wait for the last rival before
// them. prefixes has the prefixes of all nodes of the queue, rivals the prefixes of the nodes that exclude own.
func FirstAmong(children []string, own string, prefixes, rivals []string) (v Verdict) {
	ownNumber, ok := numberOf(own, prefixes)
	if !ok {
		return v
	}
	var last int32
	for _, child := range children {
		if child == own {
			v.Found = true
			continue
		}
		n, ok := numberOf(child, rivals)
		if !ok || !Before(n, ownNumber) {
			continue
		}
		if v.Watch == "" || Before(last, n) {
			v.Watch, last = child, n
		}
	}
	v.Granted = v.Watch == ""
	return v
}
