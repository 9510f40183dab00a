// Package atomic provides counters and values that many processes change without a lock: each change is a versioned
// write of one node.
//
//   - [DistributedAtomicLong] and [DistributedAtomicInteger] are counters.
//   - [DistributedAtomicValue] is any bytes.
//   - [CachedAtomicLong] and [CachedAtomicInteger] hand out unique numbers and take them in blocks.
//
// A change has one of three results. It was applied once: [Result.Succeeded]. It was not applied: a [Result] without
// Succeeded, or an error. Or nobody can know, because the answer of the server was lost: an error that wraps
// [ErrUncertain], beside both values. A change is never applied twice.
//
//	hits := atomic.NewDistributedAtomicLong(client, "/hits", retry.NTimes(10, 5*time.Millisecond))
//	result, err := hits.Increment(ctx)
//	switch {
//	case errors.Is(err, atomic.ErrUncertain): // it may be result.Post, or still result.Pre
//	case err != nil: // not counted
//	case !result.Succeeded: // not counted: others were faster each time
//	default:
//		fmt.Println(result.Post)
//	}
//
// Go and Java processes change the same nodes. docs/values.md has what each type promises.
//
// # Coming from Java Curator
//
//	counter.increment()            counter.Increment(ctx)
//	value.succeeded()              result.Succeeded: check it, as in Java
//	value.preValue(), postValue()  result.Pre, result.Post
//	counter.get().preValue()       counter.Get(ctx)
//	PromotedToLock.builder()       WithPromotedToLock(PromotedToLock{Path: …})
//	new CachedAtomicLong(c, 100)   NewCachedAtomicLong(c, 100)
package atomic
