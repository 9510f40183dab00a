// Package kdc runs a KDC of MIT Kerberos for tests, on the loopback interface and as whoever runs the tests. It needs
// Debian's packages krb5-kdc and krb5-admin-server, or Homebrew's krb5.
package kdc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

// Realm is the realm of a [Server].
const Realm = "EXAMPLE.TEST"

// Server is a KDC that ends with its test. Its methods fail the test.
type Server struct {
	tb   testing.TB
	dir  string
	addr string

	mu      sync.Mutex
	process *process
	realms  []string
	files   int
}

// New starts a KDC without principals.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{tb: tb, dir: tb.TempDir(), addr: freeAddr(tb)}
	s.create(Realm)
	tb.Cleanup(s.Stop)
	for try := 0; ; try++ {
		err := s.start()
		if err == nil {
			return s
		}
		if try > 5 {
			tb.Fatal(err)
		}
		s.addr = freeAddr(tb) // the port was taken meanwhile
	}
}

// given has the addresses that KDCs of this process have had. Another KDC at the address of one that is stopped, and
// starts again, would answer its clients.
var given sync.Map

// freeAddr returns an address where nothing listens by TCP or UDP, and where no KDC of this process was.
func freeAddr(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		addr := l.Addr().String()
		p, err := net.ListenPacket("udp", addr)
		_ = l.Close()
		if err == nil {
			_ = p.Close()
			if _, again := given.LoadOrStore(addr, true); !again {
				return addr
			}
		}
	}
	tb.Fatal("no port is free by TCP and UDP")
	return ""
}

// Addr returns host and port.
func (s *Server) Addr() string { return s.addr }

// ConfigFile returns the krb5.conf of clients.
func (s *Server) ConfigFile() string { return s.file("krb5.conf") }

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// Log returns what the KDC has written.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.file("kdc.log"))
	if err != nil {
		s.tb.Error(err)
	}
	return string(b)
}

// Admin runs commands of kadmin.local.
func (s *Server) Admin(commands ...string) {
	s.tb.Helper()
	s.run(strings.Join(commands, "\n")+"\n", "kadmin.local", "-r", Realm)
}

// create makes the database of a realm.
func (s *Server) create(realm string) {
	s.tb.Helper()
	s.realms = append(s.realms, realm)
	s.run("", "kdb5_util", "create", "-s", "-P", "master", "-r", realm)
}

// AddRealm adds another realm, which trusts the clients of Realm, with principals that have a random key. It starts the
// KDC anew.
func (s *Server) AddRealm(realm string, principals ...string) {
	s.tb.Helper()
	s.Stop()
	s.create(realm)
	trust := "addprinc -pw trust krbtgt/" + realm + "@" + Realm
	s.Admin(trust)
	commands := []string{trust}
	for _, principal := range principals {
		commands = append(commands, "addprinc -randkey "+principal)
	}
	s.run(strings.Join(commands, "\n")+"\n", "kadmin.local", "-r", realm)
	s.Start()
}

// Add adds a principal with a password, which needs pre-authentication, or with a random key if that is "". Others may
// be flags of addprinc, as -maxlife.
func (s *Server) Add(principal, password string, flags ...string) {
	s.tb.Helper()
	secret := "-randkey"
	if password != "" {
		secret = fmt.Sprintf(`+requires_preauth -pw "%s"`, password)
	}
	s.Admin(fmt.Sprintf("addprinc %s %s %s", secret, strings.Join(flags, " "), principal))
}

// Keytab writes a keytab with the keys of principals. It does not change the keys.
func (s *Server) Keytab(principals ...string) (file string) {
	s.tb.Helper()
	file = s.file(fmt.Sprintf("%d.keytab", s.count()))
	s.Admin("ktadd -norandkey -k " + file + " " + strings.Join(principals, " "))
	return file
}

// Cache logs in with a keytab, as kinit does, and returns the file with the tickets.
func (s *Server) Cache(principal, keytab string, flags ...string) (file string) {
	s.tb.Helper()
	file = s.file("cache-" + strings.ReplaceAll(principal, "/", "-"))
	s.run("", "kinit", append(append([]string{"-c", "FILE:" + file, "-k", "-t", keytab}, flags...), principal)...)
	return file
}

// JAAS writes a JAAS file with a section that logs in with a keytab, and returns its name.
func (s *Server) JAAS(section, keytab, principal string) (file string) {
	s.tb.Helper()
	file = s.file("jaas-" + section + "-" + strings.ReplaceAll(principal, "/", "-"))
	text := fmt.Sprintf(`%s {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true keyTab="%s" storeKey=true useTicketCache=false principal="%s@%s";
};
`, section, keytab, principal, Realm)
	s.write(file, text)
	return file
}

func (s *Server) write(file, text string) {
	s.tb.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.tb.Fatal(err)
	}
}

// run runs a program of Kerberos.
func (s *Server) run(input, name string, args ...string) {
	s.tb.Helper()
	s.writeConfig()
	program, err := find(name)
	if err != nil {
		s.tb.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = s.env()
	cmd.Stdin = strings.NewReader(input)
	output, err := cmd.CombinedOutput()
	// kadmin.local says so, and ends well.
	if err != nil || strings.Contains(string(output), "kadmin.local: ") && strings.Contains(string(output), " while ") {
		s.tb.Fatalf("%s %q: %v\n%s", name, args, err, output)
	}
}

func (s *Server) env() []string {
	return append(os.Environ(), "KRB5_CONFIG="+s.ConfigFile(), "KRB5_KDC_PROFILE="+s.file("kdc.conf"), "LC_ALL=C")
}

func (s *Server) writeConfig() {
	s.tb.Helper()
	s.write(s.ConfigFile(), s.config(""))
	var realms strings.Builder
	for _, realm := range s.realms {
		fmt.Fprintf(&realms, ` %[1]s = {
  database_name = %[2]s
  key_stash_file = %[2]s.stash
  acl_file = %[2]s.acl
  max_life = 10h
  max_renewable_life = 7d
  supported_enctypes = aes256-cts:normal aes128-cts:normal aes256-sha2:normal aes128-sha2:normal
 }
`, realm, s.file(realm))
	}
	s.write(s.file("kdc.conf"), fmt.Sprintf("[kdcdefaults]\n kdc_listen = %[1]s\n kdc_tcp_listen = %[1]s\n[realms]\n%[2]s",
		s.addr, &realms))
}

func (s *Server) config(more string) string {
	var realms strings.Builder
	for _, realm := range s.realms {
		fmt.Fprintf(&realms, " %s = {\n  kdc = %s\n }\n", realm, s.addr)
	}
	return fmt.Sprintf(`[libdefaults]
 default_realm = %[1]s
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 %[4]s
[realms]
%[2]s[logging]
 kdc = FILE:%[3]s
 admin_server = FILE:%[3]s.admin
`, Realm, &realms, s.file("kdc.log"), more)
}

// WriteConfig writes another krb5.conf, with one more line in [libdefaults], and returns its name.
func (s *Server) WriteConfig(line string) (file string) {
	s.tb.Helper()
	file = s.file(fmt.Sprintf("krb5-%d.conf", s.count()))
	s.write(file, s.config(line))
	return file
}

// count numbers files.
func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files++
	return s.files
}

// Stop ends the KDC. Its principals stay for Start.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.stop()
		s.process = nil
	}
}

// Start starts the KDC after Stop, at the same address.
func (s *Server) Start() {
	s.tb.Helper()
	if err := s.start(); err != nil {
		s.tb.Fatal(err)
	}
}

func (s *Server) start() error {
	s.writeConfig()
	program, err := find("krb5kdc")
	if err != nil {
		return err
	}
	args := []string{"-n"}
	for _, realm := range s.realms {
		args = append(args, "-r", realm)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.starts()
	if s.process, err = startProcess(program, args, s.env()); err != nil {
		return err
	}
	if err := s.process.await(testenv.Context(s.tb), func() bool { return s.starts() > before }); err != nil {
		s.process.stop()
		s.process = nil
		return err
	}
	return nil
}

// starts returns how often the KDC has begun to serve.
func (s *Server) starts() int {
	b, _ := os.ReadFile(s.file("kdc.log")) // not there before the first
	return strings.Count(string(b), "commencing operation")
}

// process is a KDC. A shell ends it when this process ends: the shell's input is a pipe that nobody writes to.
type process struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	done  chan struct{} // closed when it has ended
	log   strings.Builder
}

// guard runs a program until the input ends, or it ends by itself.
const guard = `exec 3<&0
"$@" </dev/null 3<&- & pid=$!
{ read -r _; kill $pid; } <&3 >/dev/null 2>&1 & reader=$!
wait $pid
status=$?
kill $reader 2>/dev/null
exit $status`

func startProcess(program string, args, env []string) (*process, error) {
	p := &process{done: make(chan struct{})}
	p.cmd = exec.Command("/bin/sh", append([]string{"-c", guard, "kdc", program}, args...)...)
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // the status of a shell that killed it means nothing
		close(p.done)
	}()
	return p, nil
}

// startPoll is the pause between two looks into the log.
const startPoll = 5 * time.Millisecond

func (p *process) await(ctx context.Context, serves func() bool) error {
	t := time.NewTicker(startPoll)
	defer t.Stop()
	for !serves() {
		select {
		case <-t.C:
		case <-p.done:
			return errors.New("kdc: it has ended: " + p.log.String())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *process) stop() {
	_ = p.input.Close()
	<-p.done
}

// places are where programs of administrators are that are not on the path of others.
var places = []string{
	"/usr/sbin", "/opt/homebrew/opt/krb5/sbin", "/opt/homebrew/opt/krb5/bin",
	"/usr/local/opt/krb5/sbin", "/usr/local/opt/krb5/bin",
}

func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range places {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("kdc: no %s: scripts/install.sh installs it", program)
}
