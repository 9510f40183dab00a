package locks

import "context"

// owner is the identity of an owner. Its address distinguishes owners.
type owner struct{ _ byte }

type ownerKey struct{}

// WithOwner returns a context with a new owner. An owner can acquire a lock again while it holds it, as a thread can in
// Java. Call WithOwner once where a request or a worker begins. Goroutines that have to exclude each other must not
// share an owner.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, new(owner))
}

// ownerOf returns the owner of ctx, or nil.
func ownerOf(ctx context.Context) *owner {
	o, _ := ctx.Value(ownerKey{}).(*owner)
	return o
}
