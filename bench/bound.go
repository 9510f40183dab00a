package main

// bound is one line of the budget: a metric of the row's contender, alone or as a ratio to the metric of another one,
// and its limit.
type bound struct {
	metric  metric
	against string // the other contender; "" for the metric alone
	least   bool   // limit is a minimum, else a maximum
	limit   float64
}

func atLeast(limit float64, m metric) bound { return bound{metric: m, least: true, limit: limit} }
func atMost(limit float64, m metric) bound  { return bound{metric: m, limit: limit} }

// of makes the limit one of the ratio to that contender.
func (b bound) of(contender string) bound { b.against = contender; return b }

// isMet reports whether v, if it is a number, is within the limit.
func (b bound) isMet(v float64) bool {
	if b.least {
		return v >= b.limit
	}
	return v <= b.limit
}

// values returns the metric or the ratio, round by round. It returns nothing without the other contender.
func (b bound) values(o *outcome) []float64 {
	values := o.values(0, b.metric)
	if b.against == "" {
		return values
	}
	others := o.values(o.row.entry(b.against), b.metric)
	if len(others) < len(values) {
		return nil
	}
	for i := range values {
		values[i] /= others[i]
	}
	return values
}
