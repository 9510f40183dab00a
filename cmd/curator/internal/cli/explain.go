package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
)

// whoTimeout bounds the question to the servers as whom they know this client.
const whoTimeout = 2 * time.Second

// noAuth is the text of zk.ErrNoAuth, which the servers also send to a client that has logged in.
var noAuth = strings.TrimPrefix(zk.ErrNoAuth.Error(), "zk: ")

// explained is an error with a text of its own.
type explained struct {
	error
	text string
}

func (e *explained) Error() string { return e.text }

// Unwrap returns the error.
func (e *explained) Unwrap() error { return e.error }

// explain says of an error of the servers' ACLs as whom they know the client: a login without a permission is another
// fault than none.
func explain(ctx context.Context, client *framework.Client, err error) error {
	if !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	why := noPermission
	if ids, failure := client.WhoAmI(ctx); failure == nil { // servers before 3.7 do not say it
		var logins, addresses []string
		for _, id := range ids {
			if id.Scheme == "ip" {
				addresses = append(addresses, id.Scheme+":"+id.ID)
			} else {
				logins = append(logins, id.Scheme+":"+id.ID)
			}
		}
		if why += " for " + strings.Join(logins, ", "); len(logins) == 0 {
			why = "not logged in, and no permission for " + strings.Join(addresses, ", ")
		}
	}
	return &explained{err, strings.ReplaceAll(err.Error(), noAuth, why)}
}

const noPermission = "no permission"

// reasonOf returns the text of the error of a node.
func reasonOf(err error) string { return strings.ReplaceAll(err.Error(), noAuth, noPermission) }
