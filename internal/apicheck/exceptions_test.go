package apicheck

// exceptions are the exported declarations that name a type of an internal package today, each with the reason.
var exceptions = map[string]string{
	"builders.Env.Executor":  forFramework,
	"builders.Env.Telemetry": forFramework,
}

const (
	forFramework = "framework makes the environment in which builders run; a program gets builders from its client"
)
