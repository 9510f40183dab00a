package chaos

import "github.com/anishathalye/porcupine"

// LockOp is an operation of [Lock]: the grant to the holder with a token, or its end.
type LockOp struct {
	Release bool
	Token   int64
}

// Lock is a lock: free, or held with a token that is higher than all before.
var Lock = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(lockState), input.(LockOp)
		if op.Release {
			return s.held && op.Token == s.token, lockState{token: s.token}
		}
		return !s.held && op.Token > s.token, lockState{held: true, token: op.Token}
	},
}

type lockState struct {
	held  bool
	token int64
}

// ReadWriteOp is an operation of [ReadWrite]: the grant to a reader or a writer, or its end.
type ReadWriteOp struct {
	Release bool
	Write   bool
	Who     int   // from 1 on
	Token   int64 // of a grant
}

// ReadWrite is a lock that one writer holds, or any number of readers; a writer may read as well. The token of a writer
// is higher than those of all writers before, that of a reader not lower.
var ReadWrite = porcupine.Model{
	Init: func() any { return readWriteState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(readWriteState), input.(ReadWriteOp)
		switch {
		case op.Write && op.Release:
			return s.writer == op.Who, readWriteState{readers: s.readers, token: s.token}
		case op.Write:
			free := s.writer == 0 && s.readers == 0
			return free && op.Token > s.token, readWriteState{writer: op.Who, token: op.Token}
		case op.Release:
			return s.readers > 0, readWriteState{writer: s.writer, readers: s.readers - 1, token: s.token}
		}
		free := s.writer == 0 || s.writer == op.Who
		return free && op.Token >= s.token, readWriteState{writer: s.writer, readers: s.readers + 1, token: s.token}
	},
}

type readWriteState struct {
	writer, readers int
	token           int64 // of the last writer
}

// LeaseOp is an operation of [Leases]: the grant of a number of leases, or their return if it is negative.
type LeaseOp int

// Leases is a semaphore with a number of leases.
func Leases(most int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, _ any) (bool, any) {
			held := state.(int) + int(input.(LeaseOp))
			return 0 <= held && held <= most, held
		},
	}
}
