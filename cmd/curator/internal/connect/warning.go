package connect

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// certificateWarning is a log of a client that keeps one line: that the client's certificate is not sent.
type certificateWarning struct {
	connected chan struct{} // closed at the first line about a state of the connection, which comes behind that line
	once      sync.Once
	text      string
}

// await returns the line about the first connection, "" if its server has got the certificate.
func (w *certificateWarning) await(ctx context.Context) string {
	select {
	case <-w.connected:
		return w.text
	case <-ctx.Done():
		return ""
	}
}

// Enabled implements slog.Handler.
func (*certificateWarning) Enabled(context.Context, slog.Level) bool { return true }

// Handle keeps the line. The client logs one line after the other.
func (w *certificateWarning) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case "connection state":
		w.once.Do(func() { close(w.connected) })
		return nil
	case "certificate not sent":
	default:
		return nil
	}
	select {
	case <-w.connected: // a later connection
		return nil
	default:
	}
	var server, reason string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "server":
			server = a.Value.String()
		case "error":
			reason = a.Value.String()
		}
		return true
	})
	w.text = fmt.Sprintf("warning: connected to %s without the certificate of --tls-cert: %s", server, reason)
	return nil
}

// WithAttrs implements slog.Handler.
func (w *certificateWarning) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w *certificateWarning) WithGroup(string) slog.Handler { return w }
