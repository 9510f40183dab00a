package discovery

// Choice identifies the list of candidates that p has made last: each list looks at all instances.
func (p *ServiceProvider[T]) Choice() any { return p.current.Load() }

// Candidates returns that list.
func (p *ServiceProvider[T]) Candidates() []*Candidate[T] { return p.current.Load().candidates }

// Counted is a strategy that counts how often another one is asked.
type Counted[T any] struct {
	Strategy[T]
	Asks int
}

// Choose counts and asks.
func (c *Counted[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	c.Asks++
	return c.Strategy.Choose(candidates)
}

func (c *Counted[T]) skipsDown() bool {
	s, ok := c.Strategy.(skipping)
	return ok && s.skipsDown()
}

func (c *Counted[T]) prepare(candidate *Candidate[T]) error {
	if s, ok := c.Strategy.(preparing[T]); ok {
		return s.prepare(candidate)
	}
	return nil
}
