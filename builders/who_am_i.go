package builders

import (
	"context"

	"github.com/gocurator/curator/internal/jute"
)

// Identity is what a server knows a client as, in one scheme of ACLs. In Java: ClientInfo.
type Identity struct {
	Scheme string // "ip", "digest", "sasl", "x509", or of a plug-in of the server
	ID     string // of scheme "digest" the user alone
}

// WhoAmI returns the identities of the client. Package framework has its documentation.
func (e *environment) WhoAmI(ctx context.Context) ([]Identity, error) {
	o := &whoAmIOp{}
	o.env, o.verb = e, "whoAmI"
	o.op.SetAbsolute()
	o.op.Protocol = o
	if err := e.Executor.Do(ctx, &o.op); err != nil {
		return nil, o.wrap(err)
	}
	var ids []Identity
	for _, id := range o.op.Reply().ACL {
		ids = append(ids, Identity{id.Scheme, id.ID})
	}
	return ids, nil
}

// whoAmIOp is the protocol of a whoAmI, which has no path.
type whoAmIOp struct{ call }

// Begin sends the request.
func (o *whoAmIOp) Begin() {
	o.send(jute.Request{Op: jute.OpWhoAmI}, func() { o.op.Finish(o.op.Err()) })
}

// Deliver does nothing: there is no whoAmI in the background.
func (o *whoAmIOp) Deliver() {}
