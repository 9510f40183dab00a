package telemetry

import (
	"maps"
	"net"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/jute"
)

// opMetrics holds what all operations of one name in one namespace share. It is made once.
type opMetrics struct {
	name      string // of their spans
	namespace string
	start     []trace.SpanStartOption
	succeeded measurement   // of those without an error
	durations *measurements // of the others, by error type
	queued    measurement
	retries   *measurements // by error type
	givenUp   *measurements
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
	key.namespace = bounded(&t.namespaces, namespace)
	all := *t.operations.Load()
	if all[key] == nil {
		all = maps.Clone(all)
		all[key] = t.newOpMetrics(key)
		t.operations.Store(&all)
	}
	return all[key]
}

// spans returns the name and the options of an operation's spans. A span keeps its namespace even where there are too
// many namespaces for series.
func (t *Telemetry) spans(op *opMetrics, operation, namespace string) (string, []trace.SpanStartOption) {
	if op.namespace == namespace {
		return op.name, op.start
	}
	return operation + " " + namespace, []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(append(
			t.base(operationName.String(operation), namespaceKey.String(namespace)), t.server...)...),
	}
}

func (t *Telemetry) newOpMetrics(key opMetricsKey) *opMetrics {
	attributes := t.base(operationName.String(key.operation))
	name := key.operation
	if key.namespace != "" {
		attributes = append(attributes, namespaceKey.String(key.namespace))
		name += " " + key.namespace
	}
	plain := attributes
	attributes = slices.Concat(attributes, t.server)
	return &opMetrics{
		name: name, namespace: key.namespace,
		start: []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...),
		},
		succeeded: newMeasurement(attributes...),
		durations: newMeasurements(func(end string) []attribute.KeyValue {
			return append(slices.Clip(attributes), endAttributes(end)...)
		}),
		queued:  newMeasurement(t.base(operationName.String(key.operation))...),
		retries: newMeasurements(decided(plain, "retry")),
		givenUp: newMeasurements(decided(plain, "give_up")),
	}
}

// decided returns the attributes of a failed attempt after which the retry policy decided so.
func decided(attributes []attribute.KeyValue, decision string) func(string) []attribute.KeyValue {
	return func(end string) []attribute.KeyValue {
		return append(slices.Clip(attributes), errorType.String(end), retryDecision.String(decision))
	}
}

// The marks in front of an end that the server has decided, and of one that the caller handles.
const (
	serverMark  = "!"
	handledMark = "."
)

// isState reports whether err only says what nodes there are.
func isState(err error) bool {
	code, ok := jute.CodeOf(err)
	return ok && slices.Contains([]jute.Code{
		jute.CodeNoNode, jute.CodeNodeExists, jute.CodeNotEmpty, jute.CodeBadVersion,
	}, code)
}

// endOf returns how an operation has ended, as a key: "" for success.
func endOf(err error, handled bool) string {
	if err == nil {
		return ""
	}
	name, byServer := classify(err)
	if handled {
		return handledMark + name
	}
	if byServer {
		return serverMark + name
	}
	return name
}

// endAttributes are those of an end.
func endAttributes(end string) []attribute.KeyValue {
	switch {
	case end == "":
		return nil
	case end[:1] == handledMark:
		return []attribute.KeyValue{statusCode.String(end[1:])}
	case end[:1] == serverMark:
		return []attribute.KeyValue{errorType.String(end[1:]), statusCode.String(end[1:])}
	}
	return []attribute.KeyValue{errorType.String(end)}
}

// serverAttributes are those of the one server that there is.
func serverAttributes(server string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return []attribute.KeyValue{serverAddress.String(host)}
	}
	return []attribute.KeyValue{serverAddress.String(host), serverPort.Int(number)}
}
