package curatortest

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/zkserver"
)

func expireIn(service *zkserver.Service, sessionID int64) error {
	return sessionError("expire", sessionID, service.Expire(sessionID))
}

// sessionError says what was to be done to the session; the service's only complaint is that there is none.
func sessionError(what string, sessionID int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("curatortest: %s session %#x: %w: %w", what, sessionID, zk.ErrSessionExpired, err)
}

func nodeError(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("curatortest: %s of %s: %w", what, path, err)
}
