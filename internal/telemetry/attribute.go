package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/gocurator/curator/internal/instrument"
)

// Keys that the conventions of OpenTelemetry lack. Keys that are specific to ZooKeeper begin with its name.
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
)

// OutcomeKey is the key of the outcome of an operation, of an outage or of a wait of a recipe.
const OutcomeKey = attribute.Key("curator.outcome")

// System is the name of the database in lower case, as the conventions require for databases that they do not list.
const System = "zookeeper"

// other replaces values of an attribute that are outside its closed set.
const other = instrument.Other
