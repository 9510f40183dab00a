package leader

// State is the state of a latch. In Java: LeaderLatch.State.
type State int

// The states of a latch.
const (
	Latent State = iota
	Started
	Closed
)
