package framework_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// secured are authorities, and certificates of bob by them.
type secured struct {
	root, other                        *authority
	fits, foreign, chain, leaf, oldAlg tls.Certificate
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{root: newAuthorityBelow(t, "root", nil), other: newAuthorityBelow(t, "other", nil)}
	between := newAuthorityBelow(t, "between", s.root)
	s.fits, s.foreign, s.leaf = s.root.issue(t, "bob"), s.other.issue(t, "bob"), between.issue(t, "bob")
	s.chain = s.leaf
	s.chain.Certificate = append([][]byte{s.leaf.Certificate[0]}, between.cert.Raw)
	s.oldAlg = s.fits
	s.oldAlg.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.ECDSAWithSHA1}
	return s
}

// serve starts a server that asks for certificates of the root, and accepts versions of TLS up to one.
func (s *secured) serve(t *testing.T, auth tls.ClientAuthType, version uint16) *curatortest.Server {
	t.Helper()
	return curatortest.NewServerT(t, curatortest.WithTLS(&tls.Config{
		Certificates: []tls.Certificate{s.root.issue(t, "127.0.0.1")}, ClientCAs: s.root.pool, ClientAuth: auth,
		MaxVersion: version,
	}))
}

// conf returns a configuration of a client with certificates.
func (s *secured) conf(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: s.root.pool, Certificates: certificates}
}

// none is a GetClientCertificate that gives only what the server names, as that of crypto/tls.
func none(certificates ...tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		for _, c := range certificates {
			if request.SupportsCertificate(&c) == nil {
				return &c, nil
			}
		}
		return &tls.Certificate{}, nil
	}
}

// fromFiles returns the option with the files of a certificate.
func (s *secured) fromFiles(t *testing.T, pair tls.Certificate) framework.Option {
	t.Helper()
	files := newPEMFiles(t)
	files.setPair(pair)
	files.setCA(s.root)
	return framework.WithTLSFromFiles(files.cert, files.key, files.ca)
}

// versions of TLS: a server refuses a client in the handshake of 1.2, and behind that of 1.3.
var versions = map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13}

// unsentCases are clients whose certificate is not sent to a server of the root, and what says why.
func (s *secured) unsentCases(t *testing.T) map[string]struct {
	option framework.Option
	why    string
} {
	t.Helper()
	byProgram := s.conf()
	byProgram.GetClientCertificate = none(s.foreign)
	const accepts = `, and the server accepts those of "CN=root": perhaps the certificate between them is missing`
	return map[string]struct {
		option framework.Option
		why    string
	}{
		"files of another authority":     {s.fromFiles(t, s.foreign), `the one of "CN=bob", issued by "CN=other"` + accepts},
		"files without the certificates": {s.fromFiles(t, s.leaf), `the one of "CN=bob", issued by "CN=between"` + accepts},
		"another authority": {
			framework.WithTLS(s.conf(s.foreign)), `the one of "CN=bob", issued by "CN=other"` + accepts,
		},
		"several": {
			framework.WithTLS(s.conf(s.foreign, s.leaf)),
			`issued by "CN=other"` + accepts + `; the one of "CN=bob", issued by "CN=between"` + accepts,
		},
		"signature algorithm": {
			framework.WithTLS(s.conf(s.oldAlg)), `the one of "CN=bob", issued by "CN=root": tls: peer doesn't support`,
		},
		"function of the program": {
			framework.WithTLS(byProgram),
			`GetClientCertificate of the program returns none, and the server asks for one of "CN=root"`,
		},
	}
}

// client returns a client and its log.
func (s *secured) client(
	t *testing.T, server *curatortest.Server, opts ...framework.Option,
) (*framework.Client, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	return newClient(t, server.ConnectString(), append(opts, framework.WithConnectionTimeout(20*time.Second),
		framework.WithMaxCloseWait(time.Minute), framework.WithLogger(slog.New(slog.NewTextHandler(log, nil))))...), log
}

// unquoted returns a log as its attributes are.
func unquoted(log *lockedBuffer) string { return strings.ReplaceAll(log.String(), `\"`, `"`) }

func wantUnsentLines(t *testing.T, log *lockedBuffer, want int, why string) {
	t.Helper()
	lines := 0
	for line := range strings.Lines(unquoted(log)) {
		if !strings.Contains(line, "certificate not sent") {
			continue
		}
		lines++
		if !strings.Contains(line, "level=WARN") || !strings.Contains(line, why) || !strings.Contains(line, "server=127.") {
			t.Errorf("the line lacks %q: %s", why, line)
		}
	}
	if lines != want {
		t.Errorf("%d lines, want %d:\n%s", lines, want, log.String())
	}
}

// A server that does not require a certificate accepts the client without one. The log says so, for each connection.
func TestTLSUnsentCertificateIsLoggedForEachConnection(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	for name, version := range versions {
		for what, tt := range s.unsentCases(t) {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				server := s.serve(t, tls.VerifyClientCertIfGiven, version)
				client, log := s.client(t, server, tt.option)
				recorded := record(client)
				start(t, client)
				recorded.want(t, connected)
				testenv.Eventually(t, func() bool { return strings.Contains(log.String(), "not sent") }, "the line")
				wantUnsentLines(t, log, 1, tt.why)
				server.Faults().Cut(client.SessionID())
				recorded.want(t, suspended, reconnected)
				testenv.Eventually(t, func() bool { return strings.Count(log.String(), "not sent\"") == 2 }, "the line")
				wantUnsentLines(t, log, 2, tt.why)
				closeClient(t, client)
				wantUnsentLines(t, log, 2, tt.why)
			})
		}
	}
}

// A server that requires a certificate refuses the client with an alert about a certificate that it has never got. The
// error says that it was not sent. During the outage the log has one line, as in any other.
func TestTLSUnsentCertificateIsTheReasonOfNoConnection(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	for name, version := range versions {
		for what, tt := range s.unsentCases(t) {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				client, log := s.client(t, s.serve(t, tls.RequireAndVerifyClientCert, version), tt.option)
				start(t, client)
				err := awaitRefusals(t, client, 3)
				if !errors.Is(err, framework.ErrCertificateNotSent) || !strings.Contains(err.Error(), tt.why) ||
					strings.Count(err.Error(), "not sent") != 1 || strings.Contains(err.Error(), "no TLS on this port") {
					t.Errorf("the error is %v, want %s", err, tt.why)
				}
				closeClient(t, client)
				wantUnsentLines(t, log, 0, "")
				// The line is about the first try, for which a busy machine may need more than the second that it has.
				text := unquoted(log)
				if strings.Count(text, "cannot connect") != 1 ||
					!strings.Contains(text, tt.why) && !strings.Contains(text, "timeout") {
					t.Errorf("the log:\n%s", log.String())
				}
			})
		}
	}
}

// awaitRefusals waits until a client has failed to connect some times, and returns the last reason.
func awaitRefusals(t *testing.T, client *framework.Client, times int) error {
	t.Helper()
	var last error
	seen := 0
	testenv.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(testenv.Context(t), 10*time.Millisecond)
		defer cancel()
		err := client.BlockUntilConnected(ctx)
		if err != nil && !errors.Is(err, framework.ErrCertificateNotSent) && !strings.Contains(err.Error(), "tls:") {
			return false // not tried yet
		}
		last = err
		seen++
		return err == nil || seen >= times
	}, "refusals")
	return last
}

// A client without any certificate is refused likewise, and its error names the authorities.
func TestTLSNoCertificateIsTheReasonOfNoConnection(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _ := s.client(t, s.serve(t, tls.RequireAndVerifyClientCert, version), framework.WithTLS(s.conf()))
			start(t, client)
			awaitReason(t, client, `the client has no certificate, and the server asks for one of "CN=root"`)
			if err := awaitRefusals(t, client, 1); errors.Is(err, framework.ErrCertificateNotSent) {
				t.Errorf("%v: there is none to send", err)
			}
		})
	}
}

// A certificate that was sent is none of the log's business, and neither is a client without one.
func TestTLSSentCertificateIsNotLogged(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	always := s.conf()
	always.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &s.fits, nil }
	chosen := s.conf()
	chosen.GetClientCertificate = none(s.foreign, s.fits)
	for _, tt := range []struct {
		name   string
		option framework.Option
		auth   tls.ClientAuthType
		user   bool
	}{
		{"files", s.fromFiles(t, s.fits), tls.RequireAndVerifyClientCert, true},
		{"configuration", framework.WithTLS(s.conf(s.fits)), tls.VerifyClientCertIfGiven, true},
		{"the second one", framework.WithTLS(s.conf(s.foreign, s.fits)), tls.VerifyClientCertIfGiven, true},
		{"chain", framework.WithTLS(s.conf(s.chain)), tls.VerifyClientCertIfGiven, true},
		{"function", framework.WithTLS(always), tls.VerifyClientCertIfGiven, true},
		{"function that chooses", framework.WithTLS(chosen), tls.VerifyClientCertIfGiven, true},
		{"no certificate", framework.WithTLS(s.conf()), tls.VerifyClientCertIfGiven, false},
		{"not asked for", framework.WithTLS(s.conf(s.foreign)), tls.NoClientCert, false},
	} {
		for name, version := range versions {
			t.Run(name+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				client, log := s.client(t, s.serve(t, tt.auth, version), tt.option)
				start(t, client)
				who, err := client.WhoAmI(testenv.Context(t))
				must(t, err)
				if got := strings.Contains(fmt.Sprint(who), "x509"); got != tt.user {
					t.Errorf("the identities are %v", who)
				}
				closeClient(t, client)
				wantUnsentLines(t, log, 0, "")
			})
		}
	}
}

// A server that names no authorities gets any certificate, and judges it.
func TestTLSCertificateIsSentToServerThatNamesNoAuthorities(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	got := make(chan []*x509.Certificate, 1)
	server := curatortest.NewServerT(t, curatortest.WithTLS(&tls.Config{
		Certificates: []tls.Certificate{s.root.issue(t, "127.0.0.1")}, ClientAuth: tls.RequestClientCert,
		VerifyConnection: func(state tls.ConnectionState) error {
			select {
			case got <- state.PeerCertificates:
			default:
			}
			return nil
		},
	}))
	client, log := s.client(t, server, framework.WithTLS(s.conf(s.foreign)))
	start(t, client)
	must(t, client.BlockUntilConnected(testenv.Context(t)))
	if certs := <-got; len(certs) != 1 || certs[0].Issuer.CommonName != "other" {
		t.Errorf("the server has got %v", certs)
	}
	closeClient(t, client)
	wantUnsentLines(t, log, 0, "")
}

// What a function of the program returns is sent although the server does not name the issuer, and its error is that of
// the connection, as without this library. Its configuration stays as it is.
func TestTLSFunctionOfTheProgramKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	server := s.serve(t, tls.VerifyClientCertIfGiven, tls.VersionTLS12)
	errNone := errors.New("the vault is closed")
	conf := s.conf(s.fits) // which the function replaces
	var cert *tls.Certificate
	var err error
	conf.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if _, ok := request.Context().Deadline(); len(request.AcceptableCAs) != 1 || !ok {
			t.Errorf("the request is %v, with a deadline %t", request.AcceptableCAs, ok)
		}
		return cert, err
	}
	for _, tt := range []struct {
		name string
		cert *tls.Certificate
		err  error
		says string
	}{
		{"a certificate of another authority", &s.foreign, nil, "tls: unknown certificate authority"},
		{"an error", nil, errNone, "the vault is closed"},
		{"nothing", nil, nil, "nil pointer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cert, err = tt.cert, tt.err
			client, _ := s.client(t, server, framework.WithTLS(conf))
			start(t, client)
			awaitReason(t, client, tt.says)
			closeClient(t, client)
		})
	}
	plain := s.conf(s.foreign)
	client, _ := s.client(t, server, framework.WithTLS(plain))
	start(t, client)
	must(t, client.BlockUntilConnected(testenv.Context(t)))
	if plain.GetClientCertificate != nil || plain.ServerName != "" {
		t.Error("the configuration of the program has changed")
	}
}

func TestTLSRequiredCertificateRefusesServers(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	required := framework.WithRequiredClientCertificate()
	for name, version := range versions {
		for what, tt := range s.unsentCases(t) {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				client, log := s.client(t, s.serve(t, tls.VerifyClientCertIfGiven, version), tt.option, required)
				start(t, client)
				err := awaitRefusals(t, client, 3)
				if !errors.Is(err, framework.ErrCertificateNotSent) || !strings.Contains(err.Error(), tt.why) {
					t.Errorf("the error is %v, want %s", err, tt.why)
				}
				closeClient(t, client)
				wantUnsentLines(t, log, 0, "")
			})
		}
		t.Run(name+" not asked for", func(t *testing.T) {
			t.Parallel()
			client, _ := s.client(t, s.serve(t, tls.NoClientCert, version), framework.WithTLS(s.conf(s.fits)), required)
			start(t, client)
			if err := awaitRefusals(t, client, 1); !errors.Is(err, framework.ErrCertificateNotSent) ||
				!strings.Contains(err.Error(), "the server does not ask for one") {
				t.Errorf("the error is %v", err)
			}
		})
		t.Run(name+" sent", func(t *testing.T) {
			t.Parallel()
			server := s.serve(t, tls.RequireAndVerifyClientCert, version)
			conf := s.conf(s.chain)
			conf.ClientSessionCache = tls.NewLRUClientSessionCache(0) // the next handshake does not ask again
			client, _ := s.client(t, server, framework.WithTLS(conf), required)
			recorded := record(client)
			start(t, client)
			recorded.want(t, connected)
			server.Faults().Cut(client.SessionID())
			recorded.want(t, suspended, reconnected)
		})
	}
}

func TestTLSRequiredCertificateWithoutOneIsErrorOfNew(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	required := framework.WithRequiredClientCertificate()
	for name, opt := range map[string]framework.Option{
		"no TLS": nil, "files": framework.WithTLSFromFiles("", "", "ca.pem"), "configuration": framework.WithTLS(s.conf()),
	} {
		_, err := framework.New("127.0.0.1:1", required, opt)
		wantErr(t, name, err, framework.ErrBadArguments)
	}
}

// A server that trusts the authorities of its system names hundreds of them: the error has some.
func TestTLSUnsentCertificateNamesSomeOfManyAuthorities(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	for i := range 30 {
		s.root.pool.AddCert(newAuthorityBelow(t, fmt.Sprintf("number %d", i), nil).cert)
	}
	server := s.serve(t, tls.RequireAndVerifyClientCert, tls.VersionTLS13)
	client, _ := s.client(t, server, framework.WithTLS(s.conf(s.foreign)))
	start(t, client)
	awaitReason(t, client, `of "CN=root", "CN=number 0", "CN=number 1", "CN=number 2", "CN=number 3", "CN=number 4", `+
		`"CN=number 5", "CN=number 6", "CN=number 7", "CN=number 8", 21 others: perhaps`)
}
