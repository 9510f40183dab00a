package main

// bound is one line of the budget: a metric of a contender, alone or as a ratio to the metric of another one, and its
// limit.
type bound struct {
	metric  metric
	subject string // the contender; "" for the first of the row
	against string // the other contender; "" for the metric alone
	other   metric // of the other contender, if it is not the same one
	least   bool   // limit is a minimum, else a maximum
	limit   float64
}

func atLeast(limit float64, m metric) bound { return bound{metric: m, least: true, limit: limit} }
func atMost(limit float64, m metric) bound  { return bound{metric: m, limit: limit} }

// of makes the limit one of the ratio to that contender.
func (b bound) of(contender string) bound { b.against = contender; return b }

// at takes another metric of the other contender than that of the first.
func (b bound) at(m metric) bound { b.other = m; return b }

// by makes the limit one of that contender.
func (b bound) by(contender string) bound { b.subject = contender; return b }

// name returns the metric, and its contender if that is not the first of the row.
func (b bound) name() string {
	if b.subject == "" {
		return b.metric.name
	}
	return b.metric.name + " of " + b.subject
}

// rival returns the name of the other contender, and its metric if that is another one.
func (b bound) rival() string {
	switch {
	case b.against == "":
		return "–"
	case b.other.of == nil:
		return b.against
	}
	return b.other.name + " of " + b.against
}

// isMet reports whether v, if it is a number, is within the limit.
func (b bound) isMet(v float64) bool {
	if b.least {
		return v >= b.limit
	}
	return v <= b.limit
}

// values returns the metric or the ratio, round by round. It returns nothing without the other contender.
func (b bound) values(o *outcome) []float64 {
	subject := 0
	if b.subject != "" {
		subject = o.row.entry(b.subject)
	}
	values := o.values(subject, b.metric)
	if b.against == "" {
		return values
	}
	other := b.metric
	if b.other.of != nil {
		other = b.other
	}
	others := o.values(o.row.entry(b.against), other)
	if len(others) < len(values) {
		return nil
	}
	for i := range values {
		values[i] /= others[i]
	}
	return values
}
