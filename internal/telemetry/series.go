package telemetry

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
)

// series are the measurements of one recipe under one name. They are made at their first use.
type series struct {
	name     string // "" for none
	all      measurement
	outcomes *measurements // by outcome

	events *measurements // of a cache, by their type

	// Of a queue.
	age                            measurement
	claims                         *measurements // by outcome
	send, receive, process, settle *measurements // by error type
}

type seriesKey struct{ recipe, name, participant string }

// maxNames is how many names, of namespaces and of what recipes work on, have series of their own: programs may make
// them up.
const maxNames = 100

// bounded returns a name, or what stands for all of those that are too many. It adds to the known ones.
func bounded(known *[]string, name string) string {
	switch {
	case name == "" || slices.Contains(*known, name):
		return name
	case len(*known) >= maxNames:
		return other
	}
	*known = append(*known, name)
	return name
}

// seriesOf returns the series of a recipe under a name, "" for none.
func (t *Telemetry) seriesOf(recipe, name string) *series {
	return t.seriesWith(seriesKey{recipe: recipe, name: name})
}

func (t *Telemetry) seriesWith(key seriesKey) *series {
	t.mu.RLock()
	s := t.series[key]
	t.mu.RUnlock()
	if s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key.name = bounded(&t.names, key.name)
	key.participant = bounded(&t.participants, key.participant)
	if s = t.series[key]; s == nil {
		s = t.newSeries(key)
		t.series[key] = s
	}
	return s
}

func (t *Telemetry) newSeries(key seriesKey) *series {
	fixed := t.base(recipeKey.String(key.recipe))
	if key.name != "" {
		fixed = append(fixed, resourceName.String(key.name))
	}
	if key.participant != "" {
		fixed = append(fixed, participantKey.String(key.participant))
	}
	queue := named(key.name)
	messages := func(name string) *measurements {
		attributes := append(t.messagingBase(name), queue...)
		return newMeasurements(func(end string) []attribute.KeyValue {
			if end == "" {
				return attributes
			}
			return append(slices.Clip(attributes), errorType.String(end))
		})
	}
	return &series{
		name: key.name,
		all:  newMeasurement(fixed...),
		outcomes: newMeasurements(func(outcome string) []attribute.KeyValue {
			return append(slices.Clip(fixed), outcomeKey.String(outcome))
		}),
		events: newMeasurements(func(typ string) []attribute.KeyValue {
			return append(slices.Clip(fixed), eventType.String(typ))
		}),
		age: newMeasurement(t.base(queue...)...),
		claims: newMeasurements(func(outcome string) []attribute.KeyValue {
			return append(t.base(queue...), outcomeKey.String(outcome))
		}),
		send: messages("send"), receive: messages("receive"), process: messages("process"), settle: messages("settle"),
	}
}

// named returns the attribute of a queue's name, none without a name.
func named(name string) []attribute.KeyValue {
	if name == "" {
		return nil
	}
	return []attribute.KeyValue{destination.String(name)}
}
