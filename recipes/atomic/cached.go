package atomic

import (
	"context"
	"fmt"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
)

// CachedAtomicNumber hands out unique numbers. It takes them from a counter in blocks, so that most of them cost no
// request. The rest of a block is lost at the end of the process, and when the outcome of taking it is not known. All
// methods are safe for concurrent use. In Java: CachedAtomicLong, CachedAtomicInteger, which are not.
type CachedAtomicNumber[T int32 | int64] struct {
	number *DistributedAtomicNumber[T]
	factor T
	err    error         // the factor is invalid
	turn   chan struct{} // has one element while nobody uses the fields below
	next   T
	left   T // numbers of the block
	stats  Stats
}

// CachedAtomicLong hands out numbers of 64 bits. In Java: CachedAtomicLong.
type CachedAtomicLong = CachedAtomicNumber[int64]

// CachedAtomicInteger hands out numbers of 32 bits. In Java: CachedAtomicInteger.
type CachedAtomicInteger = CachedAtomicNumber[int32]

// NewCachedAtomicLong returns numbers of a counter, which it takes in blocks of cacheFactor. Next returns an error if
// that is below 1.
func NewCachedAtomicLong(number *DistributedAtomicLong, cacheFactor int) *CachedAtomicLong {
	return newCached(number, cacheFactor)
}

// NewCachedAtomicInteger is NewCachedAtomicLong for 32 bits.
func NewCachedAtomicInteger(number *DistributedAtomicInteger, cacheFactor int) *CachedAtomicInteger {
	return newCached(number, cacheFactor)
}

func newCached[T int32 | int64](number *DistributedAtomicNumber[T], factor int) *CachedAtomicNumber[T] {
	c := &CachedAtomicNumber[T]{number: number, factor: T(factor), turn: make(chan struct{}, 1)}
	if factor < 1 || int(T(factor)) != factor {
		c.err = fmt.Errorf("%w: a cache factor of %d", framework.ErrBadArguments, factor)
	}
	c.turn <- struct{}{}
	return c
}

// Next returns the next number, in Pre. Post is the one behind it. Stats is that of taking the block. If no block
// could be taken, the error is that of Add, or [ErrConflict] if others were faster at each try, and the result has
// nothing but Stats. ctx bounds the wait. In Java: next, which returns 0 without succeeded in place of ErrConflict.
func (c *CachedAtomicNumber[T]) Next(ctx context.Context) (Result[T], error) {
	if c.err != nil {
		return Result[T]{}, errtext.Wrap(c.err, "atomic", "next number of %s", c.number.engine.path)
	}
	select {
	case <-c.turn:
	case <-ctx.Done():
		err := waitqueue.Explain(ctx, c.number.engine.client, ctx.Err())
		return Result[T]{}, errtext.Wrap(err, "atomic", "next number of %s", c.number.engine.path)
	}
	defer func() { c.turn <- struct{}{} }()
	if c.left == 0 {
		block, err := c.number.Add(ctx, c.factor)
		switch {
		case err != nil:
			return Result[T]{Stats: block.Stats}, err
		case !block.Succeeded:
			err = errtext.Wrap(ErrConflict, "atomic", "next number of %s", c.number.engine.path)
			return Result[T]{Stats: block.Stats}, err
		}
		c.next, c.left, c.stats = block.Pre, c.factor, block.Stats
	}
	r := Result[T]{Succeeded: true, Pre: c.next, Post: c.next + 1, Stats: c.stats}
	c.next, c.left = c.next+1, c.left-1
	return r, nil
}
