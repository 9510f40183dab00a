package node

// Kind holds the differences between the kinds of queues.
type Kind struct {
	Recipe  string // telemetry's name of it
	Delayed bool   // names contain the times when items are due
	HasIDs  bool
	// Claimed bounds the items claimed ahead in a queue with priorities, where new items precede the rest; 0 in others.
	Claimed int
}

// The other kinds.
var (
	Plain   = Kind{Recipe: "queue"}
	Delayed = Kind{Recipe: "delay_queue", Delayed: true}
	WithIDs = Kind{Recipe: "id_queue", HasIDs: true}
)

// ByPriorities returns the kind with priorities; so many items are claimed ahead.
func ByPriorities(claimed int) Kind { return Kind{Recipe: "priority_queue", Claimed: claimed} }

// IsSorted reports whether new items may precede the rest.
func (k *Kind) IsSorted() bool { return k.Delayed || k.Claimed > 0 }

// Order compares names in the order in which their items are consumed.
func (k *Kind) Order(a, b Name) int {
	switch {
	case k.Delayed:
		return ByDue(a, b)
	case k.Claimed > 0:
		return byPriority(a, b)
	}
	return ByNumber(a, b)
}
