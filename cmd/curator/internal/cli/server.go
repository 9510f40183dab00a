package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/testserver"
	"github.com/gocurator/curator/curatortest"
)

// serving is what server is to do.
type serving struct {
	servers, port    int
	host, http       string
	tick             time.Duration
	version          string
	users            map[string]string
	endWithItsParent bool
}

func (a *app) server() *cobra.Command {
	var o serving
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a server in memory, for the tests of programs in any language",
		Long: `Server runs a ZooKeeper server in memory, or an ensemble, which fails on command. It starts within milliseconds
and needs no Java. It is not for production: all is gone when it ends.

When it is ready it prints one line of JSON, with the connect string for clients. Then each line of its standard input
is a command, and gets a line of JSON as its answer; with --http a command is also a POST, with its arguments as a form
or a query. Servers are numbered from 1; without server=N all are meant.

  state                                    the servers and the sessions
  expire session=0x…                       the session ends, with its ephemeral nodes
  kill session=0x…                         the client finds its session expired; the server lets it time out
  cut [session=0x…] [server=N]             connections end
  stop|start|freeze|thaw [server=N]        a server ends, starts again with its data, stands still, goes on
  partition groups=1,2|3                   the servers of different groups do not reach each other
  blackhole [server=N] [direction=both|to-server|to-client]
  refuse [server=N]                        new connections are refused
  lag server=N by=5s                       writes of others reach the server later
  lose-request|lose-reply [RULE]           the connection ends before a request is executed, or behind it
  drop-reply [RULE]                        a reply is swallowed
  delay by=2s [RULE]                       a reply is late
  fail error=NOAUTH [RULE]                 a request is refused
  hits id=N, remove id=N                   how often a rule has acted; its end
  heal                                     all faults end
  advance by=10s                           the clock of the servers goes forward

RULE is [server=N] [op=create2,delete] [path=/locks/**] [session=0x…] [skip=0] [count=1]; count=0 is always, and each
server counts for itself.`,
		Example: `  curator server --port 2181
  curator server --servers 3 --http 127.0.0.1:8181
  curl -d session=0x100000000000001 http://127.0.0.1:8181/expire`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return a.serve(ctx, o)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.servers, "servers", 1, "how many servers; more than one are an ensemble")
	fs.StringVar(&o.host, "host", "127.0.0.1", "the address to listen on")
	fs.IntVar(&o.port, "port", 0, "the port of the first server, with the others behind it; free ones without it")
	fs.StringVar(&o.http, "http", "", "take commands as requests of HTTP at this address, as 127.0.0.1:0")
	fs.DurationVar(&o.tick, "tick", 100*time.Millisecond, "the servers' unit of time; a session lasts two at least")
	fs.StringVar(&o.version, "zookeeper", "3.8", "behave as this release: 3.8, 3.9")
	fs.StringToStringVar(&o.users, "sasl-users", nil, "users that may log in by SASL, as alice=wonder: for tests alone")
	fs.BoolVar(&o.endWithItsParent, "end-with-stdin", false, "end when the standard input ends, as with its parent")
	return cmd
}

// ready is the line that server prints when clients may connect.
type ready struct {
	Ready   bool     `json:"ready"`
	Connect string   `json:"connect"`
	Servers []string `json:"servers"`
	HTTP    string   `json:"http,omitempty"`
}

const maxPort = 65535

// listen listens at an address of a flag. One that no system has is wrong use.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if isNoAddress(err) {
		return nil, usage(fmt.Errorf("--%s: must be host:port: %w", flag, err))
	}
	return l, err
}

// isNoAddress reports whether an error is about the text of an address.
func isNoAddress(err error) bool {
	var wrong *net.AddrError
	var unknown *net.DNSError
	return errors.As(err, &wrong) || errors.As(err, &unknown)
}

// start starts the servers.
func (o *serving) start() (*testserver.Ensemble, error) {
	c := testserver.Config{Servers: o.servers, Host: o.host, Port: o.port}
	versions := map[string]curatortest.Version{"3.8": curatortest.Version38, "3.9": curatortest.Version39}
	version, ok := versions[o.version]
	if !ok {
		return nil, usage(errors.New("--zookeeper: must be 3.8, 3.9"))
	}
	switch {
	case o.servers < 1:
		return nil, usage(errors.New("--servers: must be 1 at least"))
	case o.port < 0 || o.port > maxPort:
		return nil, usage(fmt.Errorf("--port: must be 0 to %d", maxPort))
	case o.port > 0 && o.port+o.servers-1 > maxPort:
		return nil, usage(fmt.Errorf("--port: %d servers from there need ports above %d", o.servers, maxPort))
	case o.tick < time.Millisecond:
		return nil, usage(errors.New("--tick: must be 1ms at least"))
	}
	c.Options = []curatortest.ServerOption{curatortest.WithTickTime(o.tick), curatortest.WithVersion(version)}
	if len(o.users) > 0 {
		c.Options = append(c.Options, curatortest.WithSASLUsers(o.users))
	}
	e, err := testserver.Start(c)
	if isNoAddress(err) {
		return nil, usage(fmt.Errorf("--host: %w", err))
	}
	return e, err
}

func (a *app) serve(ctx context.Context, o serving) (err error) {
	e, err := o.start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	line := ready{Ready: true, Connect: e.ConnectString(), Servers: e.Addrs()}
	failed := make(chan error, 1)
	if o.http != "" {
		listener, err := listen(ctx, "http", o.http)
		if err != nil {
			return err
		}
		h := &http.Server{Handler: e.Handler(), ReadHeaderTimeout: 10 * time.Second}
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := h.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
		defer serving.Wait()
		defer func() { _ = h.Close() }() // requests under way end with it
		line.HTTP = "http://" + listener.Addr().String()
	}
	out := json.NewEncoder(a.Stdout)
	if err := out.Encode(line); err != nil {
		return err
	}
	// It waits for a line as long as the process lives: a read of the standard input cannot be ended.
	lines := make(chan string)
	go a.lines(ctx, lines)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case text, ok := <-lines:
			if !ok {
				if o.endWithItsParent {
					return nil
				}
				lines = nil
				continue
			}
			if err := out.Encode(obey(e, text)); err != nil {
				return fmt.Errorf("the answer to %q: %w", text, err)
			}
		}
	}
}

// obey returns the answer to a line.
func obey(e *testserver.Ensemble, text string) testserver.Answer {
	c, err := testserver.Parse(text)
	if err != nil {
		return testserver.Answer{Error: err.Error()}
	}
	return e.Do(c)
}

// lines sends the lines of the standard input that are not empty, and closes the channel at its end.
func (a *app) lines(ctx context.Context, lines chan<- string) {
	defer close(lines)
	for in := bufio.NewScanner(a.Stdin); in.Scan(); {
		text := strings.TrimSpace(in.Text())
		if text == "" {
			continue
		}
		select {
		case lines <- text:
		case <-ctx.Done():
			return
		}
	}
}
