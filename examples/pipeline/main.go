// Command pipeline is a traced asynchronous pipeline. Producers put jobs into a distributed queue; workers, each with a
// client of its own as if it were a process on another machine, consume them; each job does several chained background
// operations under the lock of its customer; a leader reports progress. Each job is one trace, from the producer's span
// to the last callback in the worker.
//
//	go run ./examples/pipeline
//	go run ./examples/pipeline -connect host:2181 -jobs 100 -workers 4
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 go run -tags otlp ./examples/pipeline
//
// With OTEL_EXPORTER_OTLP_ENDPOINT traces and metrics go there; without, they are shown in the terminal. The exporters
// are behind the build tag otlp, because they have to compile gRPC.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// Where the pipeline has its nodes.
const (
	jobsPath     = "/examples/pipeline/jobs"
	jobLocksPath = "/examples/pipeline/job-locks"
	customerPath = "/examples/pipeline/customers"
	resultsPath  = "/examples/pipeline/results"
	reporterPath = "/examples/pipeline/reporter"
)

type options struct {
	connect                  string
	jobs, producers, workers int
	shown                    int // traces
}

func main() {
	var o options
	flag.StringVar(&o.connect, "connect", "", "connect string; without one a server in memory")
	flag.IntVar(&o.jobs, "jobs", 12, "how many jobs")
	flag.IntVar(&o.producers, "producers", 2, "how many producers")
	flag.IntVar(&o.workers, "workers", 3, "how many workers")
	flag.IntVar(&o.shown, "traces", 3, "how many traces of jobs to show in the terminal")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

// run runs the pipeline, then shows what was observed.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.jobs < 1 || o.producers < 1 || o.workers < 1 {
		return errors.New("there have to be a job, a producer and a worker")
	}
	seen, err := newObservation(ctx, out, o.shown)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.close(context.WithoutCancel(ctx))) }()
	if o.connect == "" {
		server, err := curatortest.NewServer()
		if err != nil {
			return err
		}
		defer server.Close() //nolint:errcheck // it was in memory
		o.connect = server.ConnectString()
	}
	return newPipeline(o, seen, out).run(ctx)
}

// newClient returns a client that is observed.
func newClient(o options, seen *observation) (*framework.Client, error) {
	client, err := framework.New(o.connect,
		framework.WithSessionTimeout(10*time.Second),
		framework.WithTracerProvider(seen.tracers), // without these two: the global providers
		framework.WithMeterProvider(seen.meters),
		framework.WithPropagator(propagation.TraceContext{}), // the context of a put travels with the items
	)
	if err != nil {
		return nil, err
	}
	return client, client.Start()
}
