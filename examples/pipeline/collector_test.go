//go:build otlp

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

func TestCollectorIsUsedIfThereIsOne(t *testing.T) {
	collector := newCollector(t)
	t.Setenv(endpoint, collector.URL)
	var out strings.Builder
	o := options{connect: testenv.ConnectString(t), jobs: 2, producers: 1, workers: 1}
	if err := run(testenv.Context(t), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/traces", "/v1/metrics"} {
		if collector.received(path) == 0 {
			t.Errorf("nothing was sent to %s", path)
		}
	}
	if strings.Contains(out.String(), "trace ") {
		t.Errorf("traces are shown, too:\n%s", out.String())
	}
}

// collector counts what an OTLP exporter sends.
type collector struct {
	*httptest.Server

	mu      sync.Mutex
	byPaths map[string]int
}

func newCollector(tb testing.TB) *collector {
	tb.Helper()
	c := &collector{byPaths: make(map[string]int)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.byPaths[r.URL.Path]++
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	tb.Cleanup(c.Close)
	return c
}

func (c *collector) received(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byPaths[path]
}
