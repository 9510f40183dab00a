package curatortest

import (
	"context"
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
	"time"
)

// RealServer is an Apache ZooKeeper server that stands alone or is part of a [RealCluster]. It listens on the loopback
// interface and keeps its data in a temporary directory until Close. All methods are safe for concurrent use.
type RealServer struct {
	install installation
	dir     string
	port    int
	main    string // class
	config  map[string]string
	extra   []string // further lines of the configuration
	props   map[string]string
	log     *tail

	mu      sync.Mutex
	process *process
	closed  bool
}

// RealOption changes how a server is started.
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

// WithTickTime sets the server's unit of time; the default is 100 ms. Sessions end on a tick.
func WithTickTime(d time.Duration) RealOption {
	return WithConfig("tickTime", fmt.Sprint(d.Milliseconds()))
}

// startLimit bounds how long a server may take to serve.
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
		if s.port, err = freePort(); err == nil {
			s.config["clientPort"] = fmt.Sprint(s.port)
			err = s.Restart()
		}
		if err == nil {
			return s, nil
		}
		if try > 0 { // once is bad luck: somebody took the port
			return nil, errors.Join(err, s.Close())
		}
	}
}

func newRealServer(opts []RealOption) (*RealServer, error) {
	install, err := findInstallation()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "curatortest-")
	if err != nil {
		return nil, err
	}
	s := &RealServer{
		install: install,
		dir:     dir,
		config: map[string]string{
			"tickTime":               "100",
			"dataDir":                filepath.Join(dir, "data"),
			"clientPortAddress":      "127.0.0.1",
			"maxClientCnxns":         "0",
			"admin.enableServer":     "false",
			"4lw.commands.whitelist": "*",
			"forceSync":              "no",
			"preAllocSize":           "64",
			"extendedTypesEnabled":   "true",
			"minSessionTimeout":      "200",
			"maxSessionTimeout":      "3600000",
		},
		props: map[string]string{"znode.container.checkIntervalMs": "200"},
		log:   &tail{},
	}
	for _, o := range opts {
		o.apply(s)
	}
	return s, nil
}

// freePort returns a port of the loopback interface that nobody uses now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Addr returns host and port of the server.
func (s *RealServer) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// ConnectString returns what a client connects to.
func (s *RealServer) ConnectString() string { return s.Addr() }

// PID returns the process id of the server, 0 if it does not run.
func (s *RealServer) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.pid()
}

// Log returns the end of what the server has printed.
func (s *RealServer) Log() string { return s.log.String() }

// Restart starts the server, on the same port and with the same data, and returns when it serves. A server that runs is
// stopped first.
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
	file, err := s.writeConfig()
	if err != nil {
		return err
	}
	args := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"}
	for _, k := range slices.Sorted(maps.Keys(s.props)) {
		args = append(args, "-D"+k+"="+s.props[k])
	}
	args = append(args, "-cp", s.install.classPath, s.main, file)
	s.process, err = startProcess(s.install.java, args, s.log)
	return err
}

func (s *RealServer) writeConfig() (string, error) {
	if err := os.MkdirAll(s.config["dataDir"], 0o700); err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, "zoo.cfg")
	if s.main != "" && len(s.extra) > 0 { // a member of an ensemble writes its part of the file itself
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.config)) {
		fmt.Fprintf(&b, "%s=%s\n", k, s.config[k])
	}
	for _, line := range s.extra {
		fmt.Fprintln(&b, line)
	}
	return file, os.WriteFile(file, []byte(b.String()), 0o600)
}

// servePoll is the pause between two questions to a server that is starting. Nothing tells when it serves: it accepts
// connections, and says "imok", before.
const servePoll = 20 * time.Millisecond

// AwaitServing returns nil when the server serves.
func (s *RealServer) AwaitServing(ctx context.Context) error {
	t := time.NewTicker(servePoll)
	defer t.Stop()
	for {
		ask, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		answer, err := s.FourLetterWord(ask, "srvr")
		cancel()
		if err == nil && strings.Contains(answer, "Mode:") {
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

// Stop ends the server; port and data are kept for Restart.
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

// Freeze stops the server without ending it: its connections stay open and nothing is answered.
func (s *RealServer) Freeze() error { return s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *RealServer) Thaw() error { return s.signal(syscall.SIGCONT) }

func (s *RealServer) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("curatortest: server does not run")
	}
	return s.process.signal(sig)
}

// Close ends the server and removes its data. A second Close does nothing.
func (s *RealServer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.stopLocked(syscall.SIGKILL)
	return os.RemoveAll(s.dir)
}

// FourLetterWord sends one of ZooKeeper's four-letter commands, as "mntr" or "wchs", and returns the answer.
func (s *RealServer) FourLetterWord(ctx context.Context, word string) (string, error) {
	return fourLetterWord(ctx, s.Addr(), word)
}
