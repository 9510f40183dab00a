package instrument

import semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

// schemaURL is the URL of the conventions. The import of this file sets their version.
const schemaURL = semconv.SchemaURL

// The keys of the conventions.
const (
	SystemName      = semconv.DBSystemNameKey
	OperationName   = semconv.DBOperationNameKey
	Namespace       = semconv.DBNamespaceKey
	BatchSize       = semconv.DBOperationBatchSizeKey
	StatusCode      = semconv.DBResponseStatusCodeKey
	ErrorType       = semconv.ErrorTypeKey
	ServerAddress   = semconv.ServerAddressKey
	ServerPort      = semconv.ServerPortKey
	PeerAddress     = semconv.NetworkPeerAddressKey
	PeerPort        = semconv.NetworkPeerPortKey
	MessagingSystem = semconv.MessagingSystemKey
	MessagingName   = semconv.MessagingOperationNameKey
	MessagingType   = semconv.MessagingOperationTypeKey
	Destination     = semconv.MessagingDestinationNameKey
	MessageID       = semconv.MessagingMessageIDKey
	MessageCount    = semconv.MessagingBatchMessageCountKey
)

// Other replaces values of an attribute that are outside its closed set.
const Other = "_OTHER"
