package zkserver

import "math"

// The owner of a node in the tree is the session of an ephemeral node, or one of the marks below. Clients see sessions
// only.
const (
	ownerNone      int64 = 0
	ownerContainer int64 = math.MinInt64
	ownerTTL       int64 = -1 << 56 // the lower bits hold the time to live in milliseconds
)

// maxTTL is the longest time to live that fits beside its mark, in milliseconds.
const maxTTL int64 = 1<<40 - 1

func isTTL(owner int64) bool { return owner&ownerTTL == ownerTTL }

func ttlOf(owner int64) int64 { return owner & maxTTL }

// isEphemeral reports whether the owner is a session.
func isEphemeral(owner int64) bool {
	return owner != ownerNone && owner != ownerContainer && !isTTL(owner)
}

// Mode flags of a create.
const (
	flagPersistent = iota
	flagEphemeral
	flagSequential
	flagEphemeralSequential
	flagContainer
	flagTTL
	flagSequentialTTL
	flagsEnd
)

// mode is the kind of a node that a create requests.
type mode struct {
	ephemeral, sequential, container, ttl bool
}

// modeOf returns the mode of the flags of a create, and false for invalid flags.
func modeOf(flags int32) (mode, bool) {
	if flags < flagPersistent || flags >= flagsEnd {
		return mode{}, false
	}
	return mode{
		ephemeral:  flags == flagEphemeral || flags == flagEphemeralSequential,
		sequential: flags == flagSequential || flags == flagEphemeralSequential || flags == flagSequentialTTL,
		container:  flags == flagContainer,
		ttl:        flags == flagTTL || flags == flagSequentialTTL,
	}, true
}
