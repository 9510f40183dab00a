package framework_test

import (
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// The only server that the client can reach has no quorum at first.
func TestReadOnlyServerServesOnlyClientsThatAllowIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		opts    []framework.Option
		allowed bool
	}{
		{"default", nil, false},
		{"WithReadOnly", []framework.Option{framework.WithReadOnly()}, true},
		{"WithoutReadOnly", []framework.Option{framework.WithReadOnly(), framework.WithoutReadOnly()}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort(), curatortest.WithReadOnlyMode())
				server, others := cluster.Servers()[0], cluster.Servers()[1:]
				heal := cluster.Partition(others)
				client := newClient(t, server.Addr(), append(tt.opts, framework.WithDialer(server.DialContext))...)
				recorded := record(client)
				start(t, client)
				if tt.allowed {
					recorded.want(t, readOnly)
					heal()
					recorded.want(t, suspended, lost, connected)
				} else {
					recorded.want(t, suspended, lost)
					if requests(server, "connect") == 0 {
						t.Error("the client has not tried to connect")
					}
					heal()
					recorded.want(t, connected)
				}
				recorded.end(t, client)
			})
		})
	}
}
