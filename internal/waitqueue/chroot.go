package waitqueue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
)

// CheckChroot is for a call that has found no node, which may mean that there is no chroot. It returns an error that
// matches framework.ErrNoChroot then, and an error too if that cannot be found out. It sends one request, and none for
// a client without a chroot.
func CheckChroot(ctx context.Context, client *framework.Client) error {
	if !hook.HasChroot(client) {
		return nil
	}
	_, err := FindChroot(client).ForPath(ctx, "/")
	if errors.Is(err, zk.ErrNoAuth) { // there is something that may not be read
		return nil
	}
	return err
}

// FindChroot returns the request of CheckChroot, for the path "/".
func FindChroot(client *framework.Client) builders.CheckExists {
	return client.UsingNamespace("").CheckExists().CreatingParentsIfNeeded()
}
