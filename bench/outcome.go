package main

// outcome is the result of a row.
type outcome struct {
	row     row
	results [][]result // of each entry, round by round; empty for a missing contender
	err     error
}

// values returns a metric of an entry in each round.
func (o *outcome) values(entry int, m metric) []float64 {
	values := make([]float64, len(o.results[entry]))
	for i, r := range o.results[entry] {
		values[i] = m.of(r)
	}
	return values
}
