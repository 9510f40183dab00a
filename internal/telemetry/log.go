package telemetry

import (
	"log/slog"
	"time"
)

// levelRetry is that of records of single retries: after a lost connection there is one for each operation.
const levelRetry = slog.LevelDebug

func logOperation(name string) slog.Attr     { return slog.String("operation", name) }
func logPath(path string) slog.Attr          { return slog.String("path", path) }
func logError(err error) slog.Attr           { return slog.Any("error", err) }
func logPause(pause time.Duration) slog.Attr { return slog.Duration("pause", pause) }
