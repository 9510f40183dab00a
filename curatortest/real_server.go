package curatortest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// RealServer is an Apache ZooKeeper server that stands alone or is part of a [RealCluster]. It listens on the loopback
// interface and keeps its data in a temporary directory until Close. All methods are safe for concurrent use.
type RealServer struct {
	install installation
	dir     string
	port    int
	held    heldPorts // the port, and those of the ensemble
	id      int       // in the ensemble, from 1 on
	spec    string    // of the ensemble's member
	main    string    // class
	config  map[string]string
	props   map[string]string
	log     *tail
	super   string // credentials of a user with all permissions
	viewer  viewer
	// partitions makes the servers of a cluster reach each other through relays.
	partitions bool
	// observers is the number of observers of its cluster, and observes reports whether it is one of them.
	observers int
	observes  bool

	mu      sync.Mutex
	process *process
	closed  bool
	users   map[string]string // of SASL, with their passwords; nil without it
}

// RealOption changes a [RealServer], or all servers of a [RealCluster].
type RealOption interface{ apply(*RealServer) }

type realOption func(*RealServer)

func (o realOption) apply(s *RealServer) { o(s) }

// WithConfig sets a line of the server's configuration file.
func WithConfig(key, value string) RealOption {
	return realOption(func(s *RealServer) { s.config[key] = value })
}

// WithSystemProperty sets a Java system property of the server.
func WithSystemProperty(key, value string) RealOption {
	return realOption(func(s *RealServer) { s.props[key] = value })
}

// startLimit bounds the start of a server.
const startLimit = 30 * time.Second

// NewRealServer starts Apache ZooKeeper and returns when it serves. The error wraps [ErrNoZooKeeper] if there is none
// on this machine.
func NewRealServer(opts ...RealOption) (*RealServer, error) {
	s, err := newRealServer(opts)
	if err != nil {
		return nil, err
	}
	s.main = "org.apache.zookeeper.server.ZooKeeperServerMain"
	for try := 0; ; try++ {
		if err = s.startOnFreePort(); err == nil {
			return s, nil
		}
		if try > 0 { // the first failure may be a port that another process took
			return nil, errors.Join(err, s.Close())
		}
	}
}

// NewRealServerT is [NewRealServer] for a test: it fails the test if there is an error, and closes the server when the
// test ends.
func NewRealServerT(tb testing.TB, opts ...RealOption) *RealServer {
	tb.Helper()
	s, err := NewRealServer(opts...)
	return forTest(tb, s, err)
}

func (s *RealServer) startOnFreePort() error {
	ports, held, err := freePorts(1)
	if err != nil {
		return err
	}
	s.held.Close() //nolint:errcheck // of the first try
	s.port, s.held = ports[0], held
	s.config["clientPortAddress"], s.config["clientPort"] = loopback, fmt.Sprint(s.port)
	if err := s.writeConfig(); err != nil {
		return err
	}
	return s.Restart()
}

func newRealServer(opts []RealOption) (*RealServer, error) {
	install, err := wellKnown.find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "curatortest-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil { // the name identifies our server
		return nil, err
	}
	s := &RealServer{
		install: install,
		dir:     dir,
		config: map[string]string{
			"tickTime":               "100",
			"dataDir":                filepath.Join(dir, "data"),
			"maxClientCnxns":         "0",
			"admin.enableServer":     "false",
			"4lw.commands.whitelist": "*",
			"forceSync":              "no",
			"preAllocSize":           "64",
			"extendedTypesEnabled":   "true",
			"minSessionTimeout":      "200",
			"maxSessionTimeout":      "3600000",
		},
		props: map[string]string{
			"org.slf4j.simpleLogger.defaultLogLevel": "warn", // Debian, Ubuntu
			// No warnings about connections that end while the server does not serve, like those of AwaitServing.
			"org.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn": "off",
			"logback.configurationFile": filepath.Join(dir, "logback.xml"), // Homebrew
		},
		log: &tail{},
	}
	superUser("curatortest:" + rand.Text()).apply(s) // for Node
	for _, o := range opts {
		o.apply(s)
	}
	return s, nil
}

// Addr returns host and port of the server.
func (s *RealServer) Addr() string { return net.JoinHostPort(loopback, fmt.Sprint(s.port)) }

// ConnectString returns the connect string of the server.
func (s *RealServer) ConnectString() string { return s.Addr() }

// ID returns the number of the server in its ensemble, from 1 on; 0 if it stands alone.
func (s *RealServer) ID() int { return s.id }

// Spec returns the line of the ensemble's configuration that describes the server, as "server.1=...", which a
// reconfiguration takes; "" if it stands alone.
func (s *RealServer) Spec() string { return s.spec }

// PID returns the process id of the server, 0 if it does not run.
func (s *RealServer) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.pid()
}

// Log returns the end of the server's output.
func (s *RealServer) Log() string { return s.log.String() }

// Restart starts the server, on the same port and with the same data, and returns when it serves. A server that runs is
// stopped first. A member of an ensemble serves only when there is a quorum: start the first ones with Launch.
func (s *RealServer) Restart() error {
	if err := s.Launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return s.AwaitServing(ctx)
}

// Launch is Restart that does not wait until the server serves.
func (s *RealServer) Launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("curatortest: server is closed")
	}
	s.stopLocked(syscall.SIGTERM)
	args := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"}
	for _, k := range slices.Sorted(maps.Keys(s.props)) {
		args = append(args, "-D"+k+"="+s.props[k])
	}
	args = append(args, "-cp", s.install.classPath, s.main, s.configFile())
	var err error
	s.process, err = startProcess(s.install.java, args, s.log)
	return err
}

func (s *RealServer) configFile() string { return filepath.Join(s.dir, "zoo.cfg") }

// writeConfig writes the configuration, with these lines at its end. It writes it once: a member of an ensemble
// rewrites it when it starts and when the ensemble is reconfigured.
func (s *RealServer) writeConfig(lines ...string) error {
	if err := os.MkdirAll(s.config["dataDir"], 0o700); err != nil {
		return err
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.config)) {
		fmt.Fprintf(&b, "%s=%s\n", k, s.config[k])
	}
	for _, line := range lines {
		fmt.Fprintln(&b, line)
	}
	return errors.Join(
		s.writeJAAS(),
		os.WriteFile(s.configFile(), []byte(b.String()), 0o600),
		os.WriteFile(filepath.Join(s.dir, "logback.xml"), []byte(logback), 0o600))
}

// logback limits ZooKeeper's log to warnings and errors; without a configuration, logback prints everything.
const logback = `<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5level %logger: %msg%n</pattern></encoder>
  </appender>
  <logger name="org.apache.zookeeper.server.NIOServerCnxn" level="off"/>
  <root level="warn"><appender-ref ref="console"/></root>
</configuration>
`

const (
	// servePoll is the pause between two commands to a server that starts. There is no event for the end of the start: the
	// server accepts connections and answers "imok" before it.
	servePoll = 20 * time.Millisecond
	// serveAsk bounds one command: a server never answers one that comes between the two.
	serveAsk = 300 * time.Millisecond
)

// AwaitServing returns nil when the server serves. A member of an ensemble does when there is a quorum.
func (s *RealServer) AwaitServing(ctx context.Context) error {
	t := time.NewTicker(servePoll)
	defer t.Stop()
	for {
		if s.serves(ctx) {
			return nil
		}
		s.mu.Lock()
		p := s.process
		s.mu.Unlock()
		if p == nil {
			return errors.New("curatortest: server was stopped")
		}
		select {
		case <-t.C:
		case <-p.done:
			return fmt.Errorf("curatortest: server ended while starting:\n%s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("curatortest: server does not serve: %w\n%s", ctx.Err(), s.Log())
		}
	}
}

// serves requests the configuration of the server, which it returns only while it serves. The answer must have the name
// of our directory: another process may have taken the port while the server was down.
func (s *RealServer) serves(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serveAsk)
	defer cancel()
	answer, err := s.FourLetterWord(ctx, "conf")
	return err == nil && strings.Contains(answer, "dataDir="+s.config["dataDir"])
}

// Stop ends the server. Port and data stay for Restart.
func (s *RealServer) Stop() error { return s.end(syscall.SIGTERM) }

// Kill ends the server as a crash does.
func (s *RealServer) Kill() error { return s.end(syscall.SIGKILL) }

func (s *RealServer) end(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLocked(sig)
	return nil
}

func (s *RealServer) stopLocked(sig syscall.Signal) {
	if s.process != nil {
		s.process.stop(sig)
		s.process = nil
	}
}

// Freeze stops the server without ending it. When it returns the server answers nothing more, but connections stay
// open.
func (s *RealServer) Freeze() error { return s.withProcess((*process).freeze) }

// Thaw continues a frozen server.
func (s *RealServer) Thaw() error { return s.withProcess((*process).thaw) }

func (s *RealServer) withProcess(do func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("curatortest: server does not run")
	}
	return do(s.process)
}

// Close ends the server and removes its data. A second Close does nothing.
func (s *RealServer) Close() error {
	err := s.shut()
	s.viewer.close()
	return err
}

func (s *RealServer) shut() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.stopLocked(syscall.SIGKILL)
	return errors.Join(s.held.Close(), os.RemoveAll(s.dir))
}

// FourLetterWord sends one of ZooKeeper's four-letter words, such as "mntr" or "wchs", and returns the answer.
func (s *RealServer) FourLetterWord(ctx context.Context, word string) (string, error) {
	return fourLetterWord(ctx, s.Addr(), word)
}
