package locks

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
)

// revokeMessage is the data of a holder's node after a request to release the lock. It is Java's.
var revokeMessage = []byte("__REVOKE__")

// Revoke requests the holder of a node to release the lock. path is one of ParticipantNodes. The holder decides whether
// it releases: see [InterProcessMutex.MakeRevocable]. In Java: Revoker.attemptRevoke.
func Revoke(ctx context.Context, client *framework.Client, path string) error {
	_, err := client.SetData().Uncompressed().ForPath(ctx, path, revokeMessage)
	if errors.Is(err, zk.ErrNoNode) {
		if missing := waitqueue.CheckChroot(ctx, client); errors.Is(missing, framework.ErrNoChroot) {
			return missing
		}
	}
	return err
}

// MakeRevocable sets the function for requests of [Revoke]. It is called at most once for each hold, on the dispatcher
// of the client, and may release the hold. It applies to later Acquires; nil removes it. The nodes of a revocable lock
// have no data. In Java: makeRevocable, which has to be called again after each release.
func (m *InterProcessMutex) MakeRevocable(onRevoke func(hold *Hold)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onRevoke = onRevoke
}

// revocationHandler returns a function that reads the data of a hold's node and calls onRevoke with the first request,
// on the dispatcher of the client.
func revocationHandler(client *framework.Client, hold *Hold, onRevoke func(hold *Hold)) func(data []byte) {
	var once sync.Once
	return func(data []byte) {
		if bytes.Equal(data, revokeMessage) {
			once.Do(func() { hook.Dispatch(client, "revocation callback", func() { onRevoke(hold) }) })
		}
	}
}
