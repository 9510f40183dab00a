package report

import (
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/attribute"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

// allSeries has the series of the recipes of a client, by the names that the program gives.
type allSeries struct {
	mu           sync.RWMutex
	resources    map[seriesKey]*series
	queues       map[string]*queueSeries
	names        instrument.Names
	participants instrument.Names
}

type seriesKey struct{ recipe, name, participant string }

// series are the measurements of a recipe under one name. They are made at their first use.
type series struct {
	all      instrument.Set
	outcomes *instrument.Sets[string]
	events   *instrument.Sets[zk.EventType] // used by caches only
}

// seriesOf returns the series of a recipe under the names of key, "" for none.
func seriesOf(t *telemetry.Telemetry, key seriesKey) *series {
	a := instrument.Shared[allSeries](t.Scope())
	a.mu.RLock()
	s := a.resources[key]
	a.mu.RUnlock()
	if s != nil {
		return s
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key.name, key.participant = a.names.Bounded(key.name), a.participants.Bounded(key.participant)
	if s = a.resources[key]; s == nil {
		if a.resources == nil {
			a.resources = make(map[seriesKey]*series)
		}
		s = newSeries(t.Scope(), key)
		a.resources[key] = s
	}
	return s
}

func newSeries(scope *instrument.Scope, key seriesKey) *series {
	fixed := scope.Base(key.attributes()...)
	return &series{
		all: instrument.NewSet(fixed...),
		outcomes: instrument.NewSets(func(outcome string) []attribute.KeyValue {
			return append(slices.Clip(fixed), telemetry.OutcomeKey.String(outcome))
		}),
		events: instrument.NewSets(func(typ zk.EventType) []attribute.KeyValue {
			return append(slices.Clip(fixed), telemetry.EventType(typ))
		}),
	}
}

// attributes returns the recipe and its names.
func (k seriesKey) attributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{recipeKey.String(k.recipe)}
	if k.name != "" {
		attributes = append(attributes, resourceName.String(k.name))
	}
	if k.participant != "" {
		attributes = append(attributes, participantKey.String(k.participant))
	}
	return attributes
}

// queueSeries are the measurements of the queues of one name. They are made at their first use.
type queueSeries struct {
	name                           string // the name, or Other after too many names
	age                            instrument.Set
	claims                         *instrument.Sets[string] // attributes by outcome
	send, receive, process, settle *instrument.Sets[string] // attributes by error type; "" means no error
}

// queueSeriesOf returns the series of the queues of a name, "" for none.
func queueSeriesOf(t *telemetry.Telemetry, name string) *queueSeries {
	a := instrument.Shared[allSeries](t.Scope())
	a.mu.RLock()
	s := a.queues[name]
	a.mu.RUnlock()
	if s != nil {
		return s
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name = a.names.Bounded(name)
	if s = a.queues[name]; s == nil {
		if a.queues == nil {
			a.queues = make(map[string]*queueSeries)
		}
		s = newQueueSeries(t, name)
		a.queues[name] = s
	}
	return s
}

func newQueueSeries(t *telemetry.Telemetry, name string) *queueSeries {
	queue := t.Scope().Base(destinationOf(name)...)
	messages := func(operation string) *instrument.Sets[string] {
		attributes := append(messagingBase(t, operation), destinationOf(name)...)
		return instrument.NewSets(func(errorType string) []attribute.KeyValue {
			if errorType == "" {
				return attributes
			}
			return append(slices.Clip(attributes), instrument.ErrorType.String(errorType))
		})
	}
	return &queueSeries{
		name: name,
		age:  instrument.NewSet(queue...),
		claims: instrument.NewSets(func(outcome string) []attribute.KeyValue {
			return append(slices.Clip(queue), telemetry.OutcomeKey.String(outcome))
		}),
		send: messages("send"), receive: messages("receive"), process: messages("process"), settle: messages("settle"),
	}
}

// destinationOf returns the attribute of a queue's name, none without a name.
func destinationOf(name string) []attribute.KeyValue {
	if name == "" {
		return nil
	}
	return []attribute.KeyValue{instrument.Destination.String(name)}
}
