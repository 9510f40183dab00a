package framework_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// unknownHosts is a resolver that finds nothing.
type unknownHosts struct{}

func (unknownHosts) LookupHost(_ context.Context, host string) ([]string, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (unknownHosts) LookupSRV(_ context.Context, _, _, name string) (string, []*net.SRV, error) {
	return "", nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func TestConnectionLossErrorHasCause(t *testing.T) {
	refused := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close() //nolint:errcheck // no listener may be there
		return l.Addr().String()
	}()
	issuer := newAuthority(t)
	secured := terminate(t, testenv.Addr(t), &tls.Config{Certificates: []tls.Certificate{issuer.issue(t, "127.0.0.1")}})
	tests := map[string]struct {
		connect string
		opt     framework.Option
		matches func(err error) bool
	}{
		"refused": {refused, nil, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		"unknown host": {"zk.example:2181", framework.WithResolver(unknownHosts{}), func(err error) bool {
			var dns *net.DNSError
			return errors.As(err, &dns) && dns.IsNotFound
		}},
		"unknown SRV name": {"", framework.WithEnsembleProvider(framework.SRVEnsemble("_zookeeper._tcp.example",
			framework.WithDNSResolver(unknownHosts{}))), func(err error) bool {
			var dns *net.DNSError
			return errors.As(err, &dns) && dns.IsNotFound
		}},
		"unknown authority": {secured, framework.WithTLS(&tls.Config{RootCAs: x509.NewCertPool()}), func(err error) bool {
			var unknown x509.UnknownAuthorityError
			return errors.As(err, &unknown)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lockedBuffer
			limit := time.Second
			if name == "unknown authority" { // on a busy machine a handshake takes longer
				limit = 3 * time.Second
			}
			client := startClient(t, tt.connect, tt.opt, framework.WithConnectionTimeout(limit),
				framework.WithRetryPolicy(retry.NTimes(1, time.Millisecond)),
				framework.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
			ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
			defer cancel()
			err := client.BlockUntilConnected(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || !tt.matches(err) {
				t.Errorf("BlockUntilConnected: %v", err)
			}
			if name == "unknown SRV name" {
				return // there is no server to talk of yet
			}
			_, err = client.GetData().ForPath(testenv.Context(t), "/a")
			if !errors.Is(err, framework.ErrNotSent) || !errors.Is(err, framework.ErrConnectionLoss) || !tt.matches(err) {
				t.Errorf("operation: %v", err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v looks like the end of the context", err)
			}
			_, err = client.GetData().ForPath(ctx, "/a") // which has ended
			wantErr(t, "operation", err, context.DeadlineExceeded)
			closeClient(t, client)
			if n := strings.Count(log.String(), "cannot connect"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, log.String())
			}
		})
	}
}

func TestContextErrorHasCauseOfNoConnection(t *testing.T) {
	t.Parallel()
	client := startClient(t, "zk.example:2181", framework.WithResolver(unknownHosts{}))
	testenv.Eventually(t, func() bool { // the first calls may end before the first try to connect
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := client.GetData().ForPath(ctx, "/a")
		wantErr(t, "operation", err, context.DeadlineExceeded)
		var dns *net.DNSError
		return errors.As(err, &dns)
	}, "the error says why")
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
