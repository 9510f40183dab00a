package barrier

// Option changes a default of a barrier.
type Option interface{ apply(*settings) }

type settings struct{ name string }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithName sets what spans and metrics call the barrier; the default is nothing. Metrics have a series for each name,
// so there should be few.
func WithName(name string) Option { return option(func(s *settings) { s.name = name }) }

func settingsOf(opts []Option) (s settings) {
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}
