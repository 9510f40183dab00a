package tracing_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/tracing"
)

// statsd stands for what a team sends its numbers to.
type statsd struct {
	mu     sync.Mutex
	timers []string
	counts map[string]int
}

// AddTrace gets each operation, under the name that Java has for it.
func (s *statsd) AddTrace(name string, _ time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timers = append(s.timers, name)
}

// AddCount gets what happens.
func (s *statsd) AddCount(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name] += n
}

// A driver as for Java's TracerDriver: dashboards on its names go on to show what they did.
func ExampleDriver() {
	server, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the end of the program
	stats := &statsd{counts: make(map[string]int)}
	client, err := framework.New(server.ConnectString(), tracing.WithDriver(stats),
		framework.WithoutEnsembleTracker()) // it reads the configuration, in the background
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := client.Create().ForPath(ctx, "/orders", nil); err != nil {
		log.Fatal(err)
	}
	if _, err := client.GetData().ForPath(ctx, "/orders"); err != nil {
		log.Fatal(err)
	}
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.timers[:2], stats.counts["SyncConnected"])
	// Output: [CreateBuilderImpl-Foreground GetDataBuilderImpl-Foreground] 1
}

// sizes is a driver that wants to know more than how long things take.
type sizes struct {
	tracing.Discard

	mu  sync.Mutex
	all []string
}

// AddOperation gets each operation in place of AddTrace.
func (s *sizes) AddOperation(t tracing.OperationTrace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.RequestBytes > 0 {
		s.all = append(s.all, fmt.Sprintf("%s %s: %d children, error %v", t.Name, t.Path, t.ResponseChildren, t.Err))
	}
}

// AddEvent gets what happens in place of AddCount.
func (s *sizes) AddEvent(tracing.EventTrace) {}

func ExampleAdvancedDriver() {
	server, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the end of the program
	driver := &sizes{}
	client, err := framework.New(server.ConnectString(),
		tracing.WithDriver(driver), tracing.WithDriverFailures(), framework.WithoutEnsembleTracker())
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := client.GetChildren().ForPath(ctx, "/"); err != nil {
		log.Fatal(err)
	}
	if _, err := client.GetData().ForPath(ctx, "/none"); err == nil {
		log.Fatal("there is something")
	}
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	for _, operation := range driver.all {
		fmt.Println(operation)
	}
	// Output:
	// GetChildrenBuilderImpl-Foreground /: 1 children, error <nil>
	// GetDataBuilderImpl-Foreground /none: -1 children, error zk: node does not exist
}
