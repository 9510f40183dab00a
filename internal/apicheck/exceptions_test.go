package apicheck

// exceptions are the exported declarations that name a type of an internal package today, each with the reason.
var exceptions = map[string]string{
	"builders.Env.Executor":                   forFramework,
	"builders.Env.Telemetry":                  forFramework,
	"framework.Client.Telemetry":              forRecipes,
	"framework.WatcherRemoveClient.Telemetry": forRecipes,
	"barrier.Client.Telemetry":                forRecipes,
	"leader.Client.Telemetry":                 forRecipes,
	"locks.Client.Telemetry":                  forRecipes,
	"cache.Client.Telemetry":                  forRecipes,
	"queue.Client.Telemetry":                  forRecipes,
}

const (
	forFramework = "framework makes the environment in which builders run; a program gets builders from its client"
	forRecipes   = "recipes record spans and metrics with the telemetry of their client"
)
