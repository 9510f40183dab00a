package shared

import "github.com/gocurator/curator/internal/decimal"

// Option configures a value.
type Option interface{ apply(*settings) }

type settings struct {
	name   string
	isText func(data []byte) bool // reports whether a count must not have these bytes
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithName sets the name of the value in metrics. The default is no name. Each name is a metric series of its own, so
// use few names.
func WithName(name string) Option { return option(func(s *settings) { s.name = name }) }

// WithoutTextCheck makes a [SharedCount] read and write all bytes, as Java does. By default it refuses the text of a
// number with [ErrText]: "1234", which kazoo's Counter or a person has written, is the count 825,373,492 to Java. Some
// counts between 724 and 961 million have such bytes: programs that count so far set this option. It has no effect on
// other values.
func WithoutTextCheck() Option {
	return option(func(s *settings) { s.isText = func([]byte) bool { return false } })
}

func settingsOf(opts []Option) settings {
	s := settings{isText: decimal.IsText}
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}
