package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

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
