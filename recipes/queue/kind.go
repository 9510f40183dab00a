package queue

// kind holds the differences between the kinds of queues.
type kind struct {
	recipe   string // telemetry's name of it
	parse    func(name string) (n nodeName, found bool)
	order    func(a, b nodeName) int
	describe func(*Info, nodeName)
	delayed  bool // names contain the times when items are due
	// claimed bounds the items claimed ahead where new items precede the rest; 0 if that does not matter.
	claimed int
}

// isSorted reports whether new items may precede the rest.
func (k *kind) isSorted() bool { return k.delayed || k.claimed > 0 }

var (
	plain = kind{
		recipe:   "queue",
		parse:    parseName,
		order:    byNumber,
		describe: func(*Info, nodeName) {},
	}
	delayed = kind{
		recipe:   "delay_queue",
		parse:    parseName,
		order:    byDue,
		describe: func(i *Info, n nodeName) { i.Due = n.due() },
		delayed:  true,
	}
	withIDs = kind{
		recipe:   "id_queue",
		parse:    parseName,
		order:    byNumber,
		describe: func(i *Info, n nodeName) { i.ID = n.field },
	}
	elements = kind{
		parse: parseElement,
		order: byNumber,
	}
)

func byPriorities(claimed int) kind {
	return kind{
		recipe:   "priority_queue",
		parse:    parseName,
		order:    byPriority,
		describe: func(i *Info, n nodeName) { i.Priority = n.priority() },
		claimed:  claimed,
	}
}
