package observe

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Log has the output of a logger.
type Log struct {
	mu      sync.Mutex
	written bytes.Buffer
}

// Logger returns a logger that writes errors to l.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelError}))
}

// Write is called by the logger, once for each record.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written.Write(b)
}

// Records returns the records with a text in them.
func (l *Log) Records(text string) (records []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.written.String()) {
		if strings.Contains(line, text) {
			records = append(records, line)
		}
	}
	return records
}
