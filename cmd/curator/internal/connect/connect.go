// Package connect makes the client of a subcommand from flags, the environment, and a context of the configuration
// file.
package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/sasl"
	"github.com/gocurator/curator/sasl/digest"
)

// The defaults of the flags. A command line has less patience than a service.
const (
	DefaultSessionTimeout = 15 * time.Second
	DefaultTimeout        = 15 * time.Second
)

// soon is how long a connect takes before it is said that one is waited for.
const soon = 2 * time.Second

// ErrNotConnected is wrapped by the error of Client if no server was reached in time.
var ErrNotConnected = errors.New("not connected")

// Flags are the global flags about the servers.
type Flags struct {
	Connect, Config, Context string
	SessionTimeout, Timeout  time.Duration
	TLS                      TLS
	SASL                     SASL
	Auth                     []string

	set *pflag.FlagSet
}

// Config has everything that a client needs. It prints without secrets.
type Config struct {
	Connect        string
	SessionTimeout time.Duration
	Timeout        time.Duration
	TLS            TLS
	SASL           SASL
	Auth           []string
	password       string
}

// TLS says which certificates count. Its tags are the keys of the configuration file.
type TLS struct {
	Enabled     bool     `yaml:"enabled"` // with the authorities of the system, if no file is given
	CA          string   `yaml:"ca"`
	Cert        string   `yaml:"cert"`
	Key         string   `yaml:"key"`
	ServerName  string   `yaml:"server-name"`
	AnyHostname bool     `yaml:"any-hostname"`
	CRL         []string `yaml:"crl"`
}

func (t TLS) isSet() bool {
	return t.Enabled || t.CA != "" || t.Cert != "" || t.Key != "" || t.ServerName != "" || t.AnyHostname || len(t.CRL) > 0
}

// SASL says how to log in. There is no password among the flags: other users of the machine can read those.
type SASL struct {
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password-file"`
	JAAS         string `yaml:"jaas"`
	Section      string `yaml:"section"`
}

// Register adds the flags to those of a command.
func (f *Flags) Register(fs *pflag.FlagSet) {
	f.set = fs
	fs.StringVar(&f.Connect, "connect", "", "the servers: host:port,host:port/chroot (CURATOR_CONNECT)")
	fs.StringVar(&f.Context, "context", "", "a context of the configuration file (CURATOR_CONTEXT)")
	fs.StringVar(&f.Config, "config", "", "the configuration file (CURATOR_CONFIG)")
	fs.DurationVar(&f.SessionTimeout, "session-timeout", DefaultSessionTimeout, "the session timeout to ask for")
	fs.DurationVar(&f.Timeout, "connect-timeout", DefaultTimeout, "how long to wait for a connection")
	fs.BoolVar(&f.TLS.Enabled, "tls", false, "use TLS; every other flag about TLS implies it")
	fs.StringVar(&f.TLS.CA, "tls-ca", "", "the authorities that sign the servers' certificates, a PEM file")
	fs.StringVar(&f.TLS.Cert, "tls-cert", "", "the certificate of this client, a PEM file")
	fs.StringVar(&f.TLS.Key, "tls-key", "", "its key, a PEM file")
	fs.StringVar(&f.TLS.ServerName, "tls-server-name", "", "the name in the servers' certificates")
	fs.BoolVar(&f.TLS.AnyHostname, "tls-any-hostname", false, "accept certificates of any name")
	fs.StringSliceVar(&f.TLS.CRL, "tls-crl", nil, "revocation lists, PEM or DER files")
	fs.StringVar(&f.SASL.User, "sasl-user", "", "log in by SASL; the password is in CURATOR_SASL_PASSWORD or in a file")
	fs.StringVar(&f.SASL.PasswordFile, "sasl-password-file", "", "the file with the password")
	fs.StringVar(&f.SASL.JAAS, "jaas", "", "log in by SASL as a JAAS file of Java says")
	fs.StringVar(&f.SASL.Section, "jaas-section", "", `the section of the JAAS file (default "Client")`)
	fs.StringArrayVar(&f.Auth, "auth", nil, "credentials for ACLs, scheme:credentials (CURATOR_AUTH)")
}

// CheckEmpty returns an error for a flag that is given without a text, as that of a variable which is not set: to go on
// without the flag would be about other servers, or with fewer conditions.
func CheckEmpty(fs *pflag.FlagSet) (err error) {
	fs.VisitAll(func(f *pflag.Flag) {
		empty, isText := map[string]string{"string": "", "stringSlice": "[]", "stringToString": "[]"}[f.Value.Type()]
		if f.Changed && isText && f.NoOptDefVal == "" && f.Value.String() == empty && err == nil {
			err = fmt.Errorf("--%s: is empty", f.Name)
		}
	})
	return err
}

// HasTimeout reports whether there is a flag for the time to connect.
func (f *Flags) HasTimeout() bool { return f.set.Changed("connect-timeout") }

// Resolve returns what the flags, the environment and the context make together.
func (f *Flags) Resolve(getenv func(string) string) (Config, error) {
	if err := CheckEmpty(f.set); err != nil {
		return Config{}, err
	}
	if f.Timeout <= 0 {
		return Config{}, errors.New("--connect-timeout: must be positive")
	}
	named, err := f.namedContext(getenv)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		Connect:        first(f.Connect, getenv("CURATOR_CONNECT"), named.Connect),
		SessionTimeout: f.SessionTimeout,
		Timeout:        f.Timeout,
		TLS:            f.mergedTLS(named.TLS),
		SASL:           f.SASL,
		Auth:           f.Auth,
		password:       getenv("CURATOR_SASL_PASSWORD"),
	}
	if c.Connect == "" {
		return Config{}, errors.New("no servers: set --connect, CURATOR_CONNECT, or a context of the configuration file")
	}
	if !f.set.Changed("session-timeout") && named.SessionTimeout != 0 {
		c.SessionTimeout = named.SessionTimeout
	}
	if c.SASL == (SASL{}) { // a password belongs to its user
		c.SASL = named.SASL
	}
	if len(c.Auth) == 0 {
		if auth := getenv("CURATOR_AUTH"); auth != "" {
			c.Auth = []string{auth}
		} else {
			c.Auth = named.Auth
		}
	}
	return c, nil
}

// mergedTLS returns the settings of a context with those of the flags in their place. A key belongs to its certificate.
func (f *Flags) mergedTLS(t TLS) TLS {
	if f.set.Changed("tls") {
		t.Enabled = f.TLS.Enabled
	}
	if f.set.Changed("tls-any-hostname") {
		t.AnyHostname = f.TLS.AnyHostname
	}
	if f.TLS.Cert != "" || f.TLS.Key != "" {
		t.Cert, t.Key = f.TLS.Cert, f.TLS.Key
	}
	if len(f.TLS.CRL) > 0 {
		t.CRL = f.TLS.CRL
	}
	t.CA, t.ServerName = first(f.TLS.CA, t.CA), first(f.TLS.ServerName, t.ServerName)
	return t
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// options returns the options of the client.
func (c Config) options() ([]framework.Option, error) {
	opts := []framework.Option{
		framework.WithSessionTimeout(c.SessionTimeout),
		framework.WithConnectionTimeout(c.Timeout),
	}
	if c.TLS.isSet() {
		var tls []framework.TLSOption
		if c.TLS.ServerName != "" {
			tls = append(tls, framework.WithServerName(c.TLS.ServerName))
		}
		if c.TLS.AnyHostname {
			tls = append(tls, framework.WithoutHostnameVerification())
		}
		if len(c.TLS.CRL) > 0 {
			tls = append(tls, framework.WithRevocationLists(c.TLS.CRL...))
		}
		opts = append(opts, framework.WithTLSFromFiles(c.TLS.Cert, c.TLS.Key, c.TLS.CA, tls...))
	}
	m, err := c.mechanism()
	if err != nil {
		return nil, err
	}
	if m != nil {
		opts = append(opts, framework.WithSASL(m))
	}
	for _, auth := range c.Auth {
		scheme, credentials, ok := strings.Cut(auth, ":")
		if !ok {
			return nil, errors.New("--auth: must be scheme:credentials") // without what it is
		}
		opts = append(opts, framework.WithAuth(scheme, []byte(credentials)))
	}
	return opts, nil
}

// mechanism returns how to log in, nil without a login.
func (c Config) mechanism() (sasl.Mechanism, error) {
	switch {
	case c.SASL.JAAS != "" && c.SASL.User != "":
		return nil, errors.New("a user and a JAAS file: choose one")
	case c.SASL.JAAS != "":
		login, err := sasl.FromJAAS(c.SASL.JAAS, c.SASL.Section)
		if err != nil {
			return nil, err
		}
		return digest.FromLogin(login)
	case c.SASL.PasswordFile != "" && c.SASL.User == "":
		return nil, errors.New("a file with a password, and no user")
	case c.SASL.User == "":
		return nil, nil
	case c.SASL.PasswordFile == "" && c.password == "":
		return nil, fmt.Errorf("no password for %s: set CURATOR_SASL_PASSWORD, or a file with it", c.SASL.User)
	case c.SASL.PasswordFile == "":
		return digest.New(c.SASL.User, c.password), nil
	}
	// The file is read at each login, so that a password may change while a lock is held. One that cannot be read now is
	// an error now, and no login that fails until there is no time left.
	login := func(context.Context) (string, string, error) {
		password, err := os.ReadFile(c.SASL.PasswordFile)
		return c.SASL.User, strings.TrimRight(string(password), "\r\n"), err
	}
	if _, err := os.ReadFile(c.SASL.PasswordFile); err != nil {
		return nil, err
	}
	return digest.NewFunc(login), nil
}

// misuse is an error of the configuration. It matches framework.ErrBadArguments.
type misuse struct{ error }

// Is reports whether target is framework.ErrBadArguments.
func (misuse) Is(target error) bool { return target == framework.ErrBadArguments }

// Unwrap returns the error.
func (m misuse) Unwrap() error { return m.error }

// Start returns a client that is started, and connects in the background. The caller closes it. Its error wraps
// framework.ErrBadArguments: it is about the configuration and its files.
func (c Config) Start(opts ...framework.Option) (*framework.Client, error) {
	own, err := c.options()
	if err != nil {
		return nil, misuse{err}
	}
	client, err := framework.New(c.Connect, append(own, opts...)...)
	if err != nil {
		return nil, misuse{err}
	}
	if err := client.Start(); err != nil {
		_ = client.Close() // what failed is said already
		return nil, misuse{err}
	}
	return client, nil
}

// Client returns a client that is connected. The caller closes it. waits is called if that takes more than two seconds,
// or if the server has not got the certificate of the client, with a text for people. The error wraps ErrNotConnected
// if no server was reached in time.
func (c Config) Client(
	ctx context.Context, waits func(text string), opts ...framework.Option,
) (*framework.Client, error) {
	warning := &certificateWarning{connected: make(chan struct{})}
	client, err := c.Start(append([]framework.Option{framework.WithLogger(slog.New(warning))}, opts...)...)
	if err != nil {
		return nil, err
	}
	if err = c.Await(ctx, client, waits); err == nil {
		err = c.CheckChroot(ctx, client)
	}
	if c.TLS.Cert != "" && err == nil {
		if text := warning.await(ctx); text != "" {
			waits(text)
		}
	}
	if err != nil {
		_ = client.Close() // what failed is said already
		return nil, err
	}
	return client, nil
}

// CheckChroot returns an error that wraps framework.ErrNoChroot if the chroot of the connect string is missing. Not all
// operations fail then: a watch waits for ever, and what is to be deleted is not there.
func (c Config) CheckChroot(ctx context.Context, client *framework.Client) error {
	_, chroot, has := strings.Cut(strings.TrimPrefix(c.Connect, "dns-srv://"), "/")
	if !has || chroot == "" {
		return nil
	}
	s, err := client.CheckExists().ForPath(ctx, "/")
	if err == nil && s == nil || errors.Is(err, framework.ErrNoChroot) {
		return &noChroot{chroot}
	}
	return err
}

// noChroot is the error of a missing chroot.
type noChroot struct{ chroot string }

func (e *noChroot) Error() string {
	return "the chroot /" + e.chroot + " does not exist: create it with a connect string that ends before it"
}

// Unwrap returns framework.ErrNoChroot.
func (*noChroot) Unwrap() error { return framework.ErrNoChroot }

// Await waits until a client is connected, as Client does.
func (c Config) Await(ctx context.Context, client *framework.Client, waits func(text string)) error {
	wait, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	first, cancelFirst := context.WithTimeout(wait, soon)
	defer cancelFirst()
	err := client.BlockUntilConnected(first)
	if errors.Is(err, context.DeadlineExceeded) && wait.Err() == nil {
		why := ""
		if _, cause, ok := strings.Cut(err.Error(), context.DeadlineExceeded.Error()+": "); ok {
			why = ": " + cause
		}
		waits("waiting for a server of " + c.Connect + why)
		err = client.BlockUntilConnected(wait)
	}
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w to %s within %v: %w", ErrNotConnected, c.Connect, c.Timeout, err)
	}
	return err
}
