package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// The conventions that this package follows are pinned here.
const (
	schemaURL = semconv.SchemaURL

	systemName      = semconv.DBSystemNameKey
	operationName   = semconv.DBOperationNameKey
	namespaceKey    = semconv.DBNamespaceKey
	batchSize       = semconv.DBOperationBatchSizeKey
	statusCode      = semconv.DBResponseStatusCodeKey
	errorType       = semconv.ErrorTypeKey
	serverAddress   = semconv.ServerAddressKey
	serverPort      = semconv.ServerPortKey
	peerAddress     = semconv.NetworkPeerAddressKey
	peerPort        = semconv.NetworkPeerPortKey
	messagingSystem = semconv.MessagingSystemKey
	messagingName   = semconv.MessagingOperationNameKey
	messagingType   = semconv.MessagingOperationTypeKey
	destination     = semconv.MessagingDestinationNameKey
	messageID       = semconv.MessagingMessageIDKey
	messageCount    = semconv.MessagingBatchMessageCountKey
)

// What the conventions have no word for. Keys of one database begin with its name.
const (
	pathKey          = attribute.Key("zookeeper.path")
	createMode       = attribute.Key("zookeeper.create_mode")
	watchKey         = attribute.Key("zookeeper.watch")
	requestSize      = attribute.Key("zookeeper.request.size")
	responseSize     = attribute.Key("zookeeper.response.size")
	responseChildren = attribute.Key("zookeeper.response.children")
	sessionID        = attribute.Key("zookeeper.session.id")
	eventType        = attribute.Key("zookeeper.event.type")

	clientName      = attribute.Key("curator.client.name")
	background      = attribute.Key("curator.background")
	queueTime       = attribute.Key("curator.background.queue_time")
	retryCount      = attribute.Key("curator.retry.count")
	retryAttempt    = attribute.Key("curator.retry.attempt")
	retryDelay      = attribute.Key("curator.retry.delay")
	retryDecision   = attribute.Key("curator.retry.decision")
	connectionState = attribute.Key("curator.connection.state")
	waitDuration    = attribute.Key("curator.connection.wait.duration")
	errorSource     = attribute.Key("curator.source")
	recipeKey       = attribute.Key("curator.recipe")
	resourceName    = attribute.Key("curator.resource.name")
	outcomeKey      = attribute.Key("curator.outcome")
	reentrant       = attribute.Key("curator.lock.reentrant")
	lockPosition    = attribute.Key("curator.lock.position")
	participantKey  = attribute.Key("curator.leader.participant")
	requeues        = attribute.Key("curator.queue.requeues")
	barrierMembers  = attribute.Key("curator.barrier.members")
)

// system is the lowercase name of the product, as the conventions want it of one that they do not list.
const system = "zookeeper"

// other stands for what is outside a closed set.
const other = "_OTHER"
