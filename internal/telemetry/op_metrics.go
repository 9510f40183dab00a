package telemetry

import (
	"maps"
	"net"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/jute"
)

// opMetrics holds the series and the span options of all operations of one name in one namespace. It is made once.
type opMetrics struct {
	spanName  string
	namespace string                  // the namespace, or other after too many namespaces
	start     []trace.SpanStartOption // options of the spans
	succeeded instrument.Set
	failed    *instrument.Sets[end]
	queued    instrument.Set
	retries   *instrument.Sets[string] // of retried attempts, by error type
	givenUp   *instrument.Sets[string] // of final failures, by error type
}

type opMetricsKey struct{ operation, namespace string }

// opMetricsOf returns the opMetrics of an operation in a namespace, "" for none.
func (t *Telemetry) opMetricsOf(operation, namespace string) *opMetrics {
	key := opMetricsKey{operation, namespace}
	if known := (*t.operations.Load())[key]; known != nil {
		return known
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key.namespace = t.namespaces.Bounded(namespace)
	all := *t.operations.Load()
	if all[key] == nil {
		all = maps.Clone(all)
		all[key] = t.newOpMetrics(key)
		t.operations.Store(&all)
	}
	return all[key]
}

// spans returns the name and the options of an operation's spans. Spans show every namespace, metrics the first
// hundred.
func (t *Telemetry) spans(op *opMetrics, operation, namespace string) (string, []trace.SpanStartOption) {
	if op.namespace == namespace {
		return op.spanName, op.start
	}
	return operation + " " + namespace, []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(append(
			t.scope.Base(instrument.OperationName.String(operation), instrument.Namespace.String(namespace)), t.server...)...),
	}
}

func (t *Telemetry) newOpMetrics(key opMetricsKey) *opMetrics {
	attributes := t.scope.Base(instrument.OperationName.String(key.operation))
	name := key.operation
	if key.namespace != "" {
		attributes = append(attributes, instrument.Namespace.String(key.namespace))
		name += " " + key.namespace
	}
	plain := attributes
	attributes = slices.Concat(attributes, t.server)
	return &opMetrics{
		spanName: name, namespace: key.namespace,
		start: []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...),
		},
		succeeded: instrument.NewSet(attributes...),
		failed: instrument.NewSets(func(e end) []attribute.KeyValue {
			return append(slices.Clip(attributes), e.attributes()...)
		}),
		queued:  instrument.NewSet(t.scope.Base(instrument.OperationName.String(key.operation))...),
		retries: instrument.NewSets(decided(plain, "retry")),
		givenUp: instrument.NewSets(decided(plain, "give_up")),
	}
}

// decided returns a function from an error type to the attributes of failed attempts with a decision of the retry
// policy.
func decided(attributes []attribute.KeyValue, decision string) func(string) []attribute.KeyValue {
	return func(name string) []attribute.KeyValue {
		return append(slices.Clip(attributes), instrument.ErrorType.String(name), retryDecision.String(decision))
	}
}

// isState reports whether err is an answer about the state of a node.
func isState(err error) bool {
	code, ok := jute.CodeOf(err)
	return ok && slices.Contains([]jute.Code{
		jute.CodeNoNode, jute.CodeNodeExists, jute.CodeNotEmpty, jute.CodeBadVersion,
	}, code)
}

// end is the outcome of an operation. The zero value means success.
type end struct {
	errorType string
	answered  bool // the error is an answer of the server
	handled   bool // the caller handles the answer, so it is no error
}

func endOf(err error, handled bool) end {
	if err == nil {
		return end{}
	}
	name, answered := classify(err)
	return end{name, answered, handled}
}

// attributes returns the attributes of e on spans and metrics.
func (e end) attributes() (attributes []attribute.KeyValue) {
	if e == (end{}) {
		return nil
	}
	if !e.handled {
		attributes = append(attributes, instrument.ErrorType.String(e.errorType))
	}
	if e.answered || e.handled {
		attributes = append(attributes, instrument.StatusCode.String(e.errorType))
	}
	return attributes
}

// serverAttributes returns the attributes of the only server of a client, none for "".
func serverAttributes(server string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return []attribute.KeyValue{instrument.ServerAddress.String(host)}
	}
	return []attribute.KeyValue{instrument.ServerAddress.String(host), instrument.ServerPort.Int(number)}
}
