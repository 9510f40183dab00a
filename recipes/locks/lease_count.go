package locks

// LeaseCount is a number of leases that may change and that all processes share. In Java: SharedCountReader.
type LeaseCount interface {
	// Count returns the number of leases.
	Count() int
	// Changed returns a channel that is closed when the number changes after the call.
	Changed() <-chan struct{}
}

// fixedCount is a number of leases that does not change.
type fixedCount int

func (c fixedCount) Count() int             { return int(c) }
func (fixedCount) Changed() <-chan struct{} { return nil }
