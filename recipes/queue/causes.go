package queue

// causes are the texts of the errors that were reported. The zero value is ready.
type causes map[string]struct{}

// isNew records err, and reports whether it is new.
func (c *causes) isNew(err error) bool {
	if *c == nil {
		*c = make(causes)
	}
	_, known := (*c)[err.Error()]
	(*c)[err.Error()] = struct{}{}
	return !known
}
