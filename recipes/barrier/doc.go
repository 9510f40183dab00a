// Package barrier has barriers: gates that clients of many processes wait at.
//
//   - [DistributedBarrier] is one that somebody sets, and that lets all through when it is removed.
//   - [DistributedDoubleBarrier] has a number of members begin together and end together.
//
// Go and Java meet at the same barriers. docs/barriers.md says what each promises.
package barrier
