package atomic

import (
	"fmt"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/decimal"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

// Option configures a value.
type Option interface{ apply(*settings) }

type settings struct {
	name     string
	promoted *PromotedToLock
	receipts string
	isText   func(data []byte) bool // reports whether a number must not have these bytes
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithName sets the name of the value in spans and metrics. The default is no name. Each name is a metric series of its
// own, so use few names.
func WithName(name string) Option { return option(func(s *settings) { s.name = name }) }

// WithPromotedToLock makes a change that others keep overtaking acquire a lock and try again. In Java: the constructor
// with a PromotedToLock.
func WithPromotedToLock(p PromotedToLock) Option {
	return option(func(s *settings) { s.promoted = &p })
}

// WithReceipts makes almost every lost answer a known outcome, also while others change the value. Each change is a
// transaction of two writes: of the value, and of an ephemeral node of this process below path. After a lost answer the
// version of that node shows whether the transaction was applied, as long as the session lasts. Without it another
// client's change often hides what became of ours: see [ErrUncertain].
//
// Other processes, Go or Java, need not do the same. Call Close to remove the ephemeral node before the session ends.
func WithReceipts(path string) Option {
	return option(func(s *settings) { s.receipts = path })
}

// WithoutTextCheck makes a counter read and write all bytes, as Java does. By default it refuses the text of a number
// with [ErrText]: "12345678", which kazoo's Counter or a person has written, is 3,544,952,156,018,063,160 to Java, and
// "1234" is the integer 825,373,492. Some numbers of 32 bits between 724 and 961 million have such bytes, and some of
// 64 bits above 3 * 10^18: programs that count so far set this option. It has no effect on a [DistributedAtomicValue].
func WithoutTextCheck() Option {
	return option(func(s *settings) { s.isText = func([]byte) bool { return false } })
}

// PromotedToLock describes the lock of [WithPromotedToLock]. The lock is one of locks.InterProcessMutex. It does not
// keep others from changing the value without it. In Java: PromotedToLock.
type PromotedToLock struct {
	// Path is the path of the lock.
	Path string
	// Timeout bounds the wait for the lock. 0 is no bound but the context.
	Timeout time.Duration
	// Policy is the retry policy while the lock is held. nil is one try.
	Policy retry.Policy
}

// newEngine returns the engine of a value. recipe is its name in metrics.
func newEngine(client *framework.Client, recipe, path string, policy retry.Policy, opts []Option) *engine {
	s := settings{isText: decimal.IsText}
	for _, o := range opts {
		o.apply(&s)
	}
	e := &engine{
		client: client, path: path, policy: policy, err: s.validate(path, policy), isText: s.isText,
		obs: report.NewValue(hook.Telemetry(client), recipe, s.name, path),
	}
	if s.promoted != nil {
		e.promoted = &promotion{
			queue: waitqueue.Queue{Client: client, Path: s.promoted.Path, Prefix: mutexPrefix},
			wait:  s.promoted.Timeout, policy: s.promoted.Policy,
		}
		if e.promoted.wait == 0 {
			e.promoted.wait = waitqueue.Forever
		}
		if e.promoted.policy == nil {
			e.promoted.policy = retry.NTimes(0, 0)
		}
	}
	if s.receipts != "" {
		e.receipts = &receipts{client: client, path: s.receipts}
	}
	e.watch = newWatch(client, path)
	return e
}

// mutexPrefix is the prefix of the nodes of a locks.InterProcessMutex.
const mutexPrefix = "lock-"

func (s *settings) validate(path string, policy retry.Policy) error {
	if err := zkpath.Validate(path, false); err != nil {
		return err
	}
	if err := validatePolicy(policy); err != nil {
		return err
	}
	if p := s.promoted; p != nil {
		if err := zkpath.Validate(p.Path, false); err != nil {
			return errtext.Wrap(err, "", "lock")
		}
		if p.Timeout < 0 {
			return fmt.Errorf("%w: a lock with a timeout of %v", framework.ErrBadArguments, p.Timeout)
		}
		if short := errtext.TooShort(p.Timeout); short != "" {
			return fmt.Errorf("%w: the timeout of the lock %s", framework.ErrBadArguments, short)
		}
		if p.Policy != nil {
			if err := validatePolicy(p.Policy); err != nil {
				return errtext.Wrap(err, "", "lock")
			}
		}
	}
	if s.receipts != "" {
		if err := zkpath.Validate(s.receipts, false); err != nil {
			return errtext.Wrap(err, "", "receipts")
		}
	}
	return nil
}

func validatePolicy(policy retry.Policy) error {
	if policy == nil {
		return fmt.Errorf("%w: no retry policy", framework.ErrBadArguments)
	}
	if v, ok := policy.(retry.Validator); ok {
		return v.Validate()
	}
	return nil
}
