package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// resolve returns what flags and an environment make together.
func resolve(t *testing.T, environ map[string]string, args ...string) (Config, error) {
	t.Helper()
	var f Flags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Register(fs)
	testclient.Must(t, fs.Parse(args))
	return f.Resolve(func(name string) string { return environ[name] })
}

// configured writes a configuration file, and returns its path.
func configured(t *testing.T, dir, content string) string {
	t.Helper()
	path := filepath.Join(dir, "curator", "config.yaml")
	testclient.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	testclient.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

const whole = `current: it
contexts:
  it:
    connect: zk:1
    session-timeout: 40s
    tls: {ca: its-ca, cert: its-cert, key: its-key, server-name: its-name, crl: [its-crl]}
    sasl: {user: alice, password-file: its-password}
    auth: ["digest:alice:wonder"]
`

// The error is for people: it has no type of this package.
func TestResolveUnknownKeyIsNamed(t *testing.T) {
	file := configured(t, t.TempDir(), "contexts:\n  it:\n    sesion-timeout: 40s\n")
	_, err := resolve(t, nil, "--config", file)
	if err == nil || !strings.Contains(err.Error(), "line 3: the key sesion-timeout is not known") {
		t.Errorf("%v", err)
	}
}

func TestResolveFlagCountsBeforeContext(t *testing.T) {
	file := configured(t, t.TempDir(), whole)
	all := Config{
		Connect: "zk:1", SessionTimeout: 40 * time.Second, Timeout: DefaultTimeout,
		TLS: TLS{
			CA: "its-ca", Cert: "its-cert", Key: "its-key", ServerName: "its-name", CRL: []string{"its-crl"},
		},
		SASL: SASL{User: "alice", PasswordFile: "its-password"}, Auth: []string{"digest:alice:wonder"},
	}
	for _, test := range []struct {
		args []string
		set  func(*Config)
	}{
		{nil, func(*Config) {}},
		{[]string{"--session-timeout", "15s"}, func(c *Config) { c.SessionTimeout = 15 * time.Second }}, // the default
		{[]string{"--tls-server-name", "mine"}, func(c *Config) { c.TLS.ServerName = "mine" }},
		{[]string{"--tls-any-hostname"}, func(c *Config) { c.TLS.AnyHostname = true }},
		{[]string{"--tls-ca", "mine"}, func(c *Config) { c.TLS.CA = "mine" }},
		{[]string{"--tls-crl", "mine"}, func(c *Config) { c.TLS.CRL = []string{"mine"} }},
		// A key belongs to its certificate, and a password to its user.
		{[]string{"--tls-cert", "a", "--tls-key", "b"}, func(c *Config) { c.TLS.Cert, c.TLS.Key = "a", "b" }},
		{[]string{"--tls-cert", "a"}, func(c *Config) { c.TLS.Cert, c.TLS.Key = "a", "" }},
		{[]string{"--sasl-user", "bob"}, func(c *Config) { c.SASL = SASL{User: "bob"} }},
		{[]string{"--auth", "digest:bob:x"}, func(c *Config) { c.Auth = []string{"digest:bob:x"} }},
	} {
		want := all
		test.set(&want)
		got, err := resolve(t, map[string]string{"CURATOR_CONFIG": file}, test.args...)
		if err != nil {
			t.Errorf("%v: %v", test.args, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.args, diff)
		}
	}
}

// TestResolveTakesNoFileOfTheWorkingDirectory has programs without a home directory, as those of cron and of services
// are: a file that somebody has put where they run must not count.
func TestResolveTakesNoFileOfTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	configured(t, filepath.Join(dir, ".config"), whole)
	configured(t, dir, whole)
	for _, environ := range []map[string]string{
		{}, {"HOME": "."}, {"XDG_CONFIG_HOME": "."}, {"XDG_CONFIG_HOME": ".config"},
	} {
		if got, err := resolve(t, environ); err == nil {
			t.Errorf("%v: connects to %s", environ, got.Connect)
		}
	}
	for _, environ := range []map[string]string{{"HOME": dir}, {"XDG_CONFIG_HOME": dir}} {
		if got, err := resolve(t, environ); err != nil || got.Connect != "zk:1" {
			t.Errorf("%v: %+v %v", environ, got, err)
		}
	}
	if _, err := resolve(t, nil, "--context", "it"); err == nil {
		t.Error("a context without a file is no error")
	}
}

func TestResolveWithoutAHomeDirectory(t *testing.T) {
	for _, home := range []string{"/dev/null", "/nonexistent", ""} {
		got, err := resolve(t, map[string]string{"HOME": home, "CURATOR_CONNECT": "zk:2"})
		if err != nil || got.Connect != "zk:2" {
			t.Errorf("HOME=%s: %+v %v", home, got, err)
		}
	}
}

func TestPasswordFileThatCannotBeReadIsAnErrorAtOnce(t *testing.T) {
	dir := t.TempDir()
	c, err := resolve(t, nil, "--connect", "127.0.0.1:1", "--sasl-user", "alice", "--sasl-password-file", dir)
	testclient.Must(t, err)
	if client, err := c.Start(); err == nil {
		t.Errorf("no error; closed: %v", client.Close())
	}
}
