package locks

import (
	"bytes"
	"context"
	"sync"
)

// revokeMessage is what the data of a holder's node is set to when somebody asks for the lock.
var revokeMessage = []byte("__REVOKE__")

// Revoke asks the holder of a node, one of the paths of ParticipantNodes, to release the lock. Whether it does is up to
// it: see [InterProcessMutex.MakeRevocable]. In Java: Revoker.attemptRevoke.
func Revoke(ctx context.Context, client Client, path string) error {
	_, err := client.SetData().Uncompressed().ForPath(ctx, path, revokeMessage)
	return err
}

// MakeRevocable has requested called when somebody asks for the lock with [Revoke], once for each hold, on the
// dispatcher of the client; it may release the hold. It counts for what is acquired from now on, until it is called
// again; nil turns it off. The nodes of a revocable lock have no data. In Java: makeRevocable, which has to be called
// again after each release.
func (m *InterProcessMutex) MakeRevocable(requested func(hold *Hold)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revoked = requested
}

// requestOf returns a function for the data of a hold's node that calls requested with the first request to release it.
func requestOf(hold *Hold, requested func(hold *Hold)) func(data []byte) {
	var once sync.Once
	return func(data []byte) {
		if bytes.Equal(data, revokeMessage) {
			once.Do(func() { requested(hold) })
		}
	}
}
