// Package claim makes items ours, and ends that.
//
// LockClaim claims an item with a lock, DeleteClaim without one. Settler deletes a claimed item, or puts it back, with
// its lock. Quarantine holds the items that cannot be read or claimed. Watch reports the events of items and locks.
package claim
