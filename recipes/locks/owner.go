package locks

import "context"

// owner is an identity: its address.
type owner struct{ _ byte }

type ownerKey struct{}

// WithOwner returns a context with an identity of its own, for a line of execution that enters a lock again while it
// holds it: what a thread is in Java. Call it once where such a line begins, a request or a worker. It must not be
// shared by goroutines that are to exclude each other; a goroutine that contends on its own gets its own owner.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, new(owner))
}

// ownerOf returns the owner of ctx, nil if there is none.
func ownerOf(ctx context.Context) *owner {
	o, _ := ctx.Value(ownerKey{}).(*owner)
	return o
}
