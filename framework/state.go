package framework

import "strings"

// State is the state of a client's life. In Java: CuratorFrameworkState.
type State int

// The states of a client's life.
const (
	Latent  State = iota // not started
	Started              // between Start and Close
	Stopped              // closed
)

// String returns Java's name of the state.
func (s State) String() string {
	switch s {
	case Latent:
		return "LATENT"
	case Started:
		return "STARTED"
	}
	return "STOPPED"
}

// ConnectionState is a state of a client's connection, as its listeners get it. In Java: ConnectionState.
type ConnectionState int

// The connection states.
const (
	// Connected is the first connection of the client's life, once.
	Connected ConnectionState = iota + 1
	// Suspended means that the connection is lost; the session may still live. A leader or a holder of a lock should
	// pause.
	Suspended
	// Reconnected means that there is a connection again: with the same session after Suspended, with a new one after
	// Lost.
	Reconnected
	// Lost means that the session has ended, or must have ended by the client's own clock, with its ephemeral nodes, locks
	// and leadership.
	Lost
	// ReadOnly means that there is a connection to a server without a quorum.
	ReadOnly
)

// IsConnected reports whether there is a connection in this state.
func (s ConnectionState) IsConnected() bool {
	return s == Connected || s == Reconnected || s == ReadOnly
}

// String returns Java's name of the state.
func (s ConnectionState) String() string {
	switch s {
	case Connected:
		return "CONNECTED"
	case Suspended:
		return "SUSPENDED"
	case Reconnected:
		return "RECONNECTED"
	case Lost:
		return "LOST"
	case ReadOnly:
		return "READ_ONLY"
	}
	return "NONE"
}

// word is telemetry's word for the state.
func (s ConnectionState) word() string { return strings.ToLower(s.String()) }

// ErrorPolicy decides in which connection states a recipe gives up its hold, such as leadership. In Java:
// ConnectionStateErrorPolicy.
type ErrorPolicy interface {
	IsErrorState(s ConnectionState) bool
}

// StandardErrorPolicy takes Suspended and Lost for errors: the default. In Java: StandardConnectionStateErrorPolicy.
type StandardErrorPolicy struct{}

// IsErrorState reports whether s is Suspended or Lost.
func (StandardErrorPolicy) IsErrorState(s ConnectionState) bool { return s == Suspended || s == Lost }

// SessionErrorPolicy takes only Lost for an error. In Java: SessionConnectionStateErrorPolicy.
type SessionErrorPolicy struct{}

// IsErrorState reports whether s is Lost.
func (SessionErrorPolicy) IsErrorState(s ConnectionState) bool { return s == Lost }
