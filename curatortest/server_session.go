package curatortest

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/zkserver"
)

func expireIn(service *zkserver.Service, sessionID int64) error {
	return sessionError("expire", sessionID, service.Expire(sessionID))
}

// sessionError wraps err with the failed action on a session.
func sessionError(what string, sessionID int64, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, zkserver.ErrNoSession) {
		err = zk.ErrSessionExpired
	}
	return fmt.Errorf("curatortest: %s session %#x: %w", what, sessionID, err)
}

func nodeError(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("curatortest: %s of %s: %w", what, path, err)
}
