package shared

// Option configures a value.
type Option interface{ apply(*settings) }

type settings struct{ name string }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithName sets the name of the value in metrics. The default is no name. Each name is a metric series of its own, so
// use few names.
func WithName(name string) Option { return option(func(s *settings) { s.name = name }) }

func settingsOf(opts []Option) (s settings) {
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}
