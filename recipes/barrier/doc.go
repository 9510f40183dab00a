// Package barrier provides barriers: clients of many processes wait at them.
//
//   - [DistributedBarrier] is set by one client, and blocks all waiters until it is removed.
//   - [DistributedDoubleBarrier] makes a number of members begin together and end together.
//
// Go and Java processes meet at the same barriers. docs/barriers.md has what each promises.
package barrier
