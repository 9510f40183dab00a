package report

import "go.opentelemetry.io/otel/attribute"

// Keys of several recipes that the conventions of OpenTelemetry lack.
const (
	recipeKey    = attribute.Key("curator.recipe")
	resourceName = attribute.Key("curator.resource.name")
)

// The buckets of waits, of holds and of ages. The program decides how long these take, so the buckets reach further
// than those of requests.
var (
	waitBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	holdBuckets = []float64{.01, .1, 1, 10, 60, 600, 3600}
	ageBuckets  = []float64{.001, .01, .1, 1, 10, 60, 600, 3600, 86400}
)
