package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

// WithRequiredClientCertificate refuses a server that the client does not send its certificate to: the server names
// authorities that have not issued it, has none of its signature algorithms, or does not ask for a certificate. The
// error matches [ErrCertificateNotSent]. The server is tried again as one that cannot be reached. Without a certificate
// in [WithTLS] or [WithTLSFromFiles], New returns an error.
//
// Without this option such a client is connected to a server that does not require a certificate, without the identity
// of the scheme x509; the log has a warning, for each connection.
func WithRequiredClientCertificate() Option {
	return option(func(c *config) { c.needsCertificate = true })
}

// hasCertificate reports whether the client has a certificate, or a function of the program for it.
func (c *config) hasCertificate() bool {
	switch {
	case c.files != nil:
		return c.files.cert != ""
	case c.tls != nil:
		return len(c.tls.Certificates) > 0 || c.tls.GetClientCertificate != nil
	}
	return false
}

// securedConn is a connection by TLS. It keeps why the server has no certificate of the client. A server that requires
// one refuses the client by an alert, in TLS 1.3 after the handshake; for others the client has no identity.
type securedConn struct {
	*tls.Conn
	asked    bool                  // the server has asked for a certificate
	missing  atomic.Pointer[error] // what it has asked for and not got; nil if it got a certificate
	answered atomic.Bool           // the server has sent something behind the handshake, so it accepts the client
}

// secureConn starts TLS on a connection, with a configuration of its own.
func secureConn(ctx context.Context, nc net.Conn, conf *tls.Config, required bool) (*securedConn, error) {
	s := &securedConn{}
	conf.GetClientCertificate = s.certificate(conf, required)
	s.Conn = tls.Client(nc, conf)
	err := s.HandshakeContext(ctx)
	switch {
	case err == nil && required && !s.asked && !s.ConnectionState().DidResume:
		err = fmt.Errorf("%w: the server does not ask for one", ErrCertificateNotSent)
	case err == nil:
		return s, nil
	case s.asked:
		err = s.explain(err)
	default:
		// A server without TLS takes the first message for a frame that is too long, and closes the connection.
		var header tls.RecordHeaderError
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.As(err, &header) {
			err = fmt.Errorf("%w: perhaps the server has no TLS on this port", err)
		}
	}
	return nil, err
}

// certificate returns a GetClientCertificate that does what the one of conf does, or what crypto/tls does without one,
// and keeps why no certificate was sent. crypto/tls alone does not say it.
func (s *securedConn) certificate(
	conf *tls.Config, required bool,
) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	program, certificates := conf.GetClientCertificate, conf.Certificates
	choose := func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if program != nil {
			return program(request)
		}
		for i := range certificates {
			if request.SupportsCertificate(&certificates[i]) == nil {
				return &certificates[i], nil
			}
		}
		return new(tls.Certificate), nil
	}
	return func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		s.asked = true
		s.missing.Store(nil)
		cert, err := choose(request)
		if err != nil || cert == nil || len(cert.Certificate) > 0 {
			return cert, err
		}
		var missing error
		switch {
		case program != nil:
			missing = fmt.Errorf("%w: GetClientCertificate of the program returns none, and the server asks for one%s",
				ErrCertificateNotSent, ofAuthorities(request))
		case len(certificates) > 0:
			missing = unsuitable(certificates, request)
		default:
			missing = fmt.Errorf("the client has no certificate, and the server asks for one%s", ofAuthorities(request))
		}
		s.missing.Store(&missing)
		if required {
			return nil, missing
		}
		return cert, nil
	}
}

// unsent returns why the certificate of the client was not sent; nil if it was, or if the client has none.
func (s *securedConn) unsent() *error {
	if missing := s.missing.Load(); missing != nil && errors.Is(*missing, ErrCertificateNotSent) {
		return missing
	}
	return nil
}

// Read reads. The first bytes show that the server accepts the client.
func (s *securedConn) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.answered.Store(true)
	}
	return n, s.explain(err)
}

// Write writes. It may notice a refusal before Read does.
func (s *securedConn) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	return n, s.explain(err)
}

// explain adds to the first failure which certificate the server has not got.
func (s *securedConn) explain(err error) error {
	missing := s.missing.Load()
	switch {
	case err == nil, missing == nil, s.answered.Load(), errors.Is(err, *missing), errors.Is(err, net.ErrClosed),
		errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("%w: %w", err, *missing)
}

// unsuitable returns why none of the certificates was sent.
func unsuitable(certificates []tls.Certificate, request *tls.CertificateRequestInfo) error {
	anyIssuer := *request
	anyIssuer.AcceptableCAs = nil
	var reasons []string
	for i := range certificates {
		c := &certificates[i]
		if err := anyIssuer.SupportsCertificate(c); err != nil {
			reasons = append(reasons, fmt.Sprintf("the one of %s: %v", subjectOf(c), err))
		} else {
			reasons = append(reasons, fmt.Sprintf("the one of %s, and the server accepts those%s: "+
				"perhaps the certificate between them is missing", subjectOf(c), ofAuthorities(request)))
		}
	}
	return fmt.Errorf("%w: %s", ErrCertificateNotSent, strings.Join(reasons, "; "))
}

// subjectOf returns whose a certificate is, and the issuer at the end of its chain.
func subjectOf(c *tls.Certificate) string {
	if len(c.Certificate) == 0 {
		return "no subject"
	}
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	last, lastErr := x509.ParseCertificate(c.Certificate[len(c.Certificate)-1])
	if err != nil || lastErr != nil {
		return "a subject that cannot be read"
	}
	issued := "issued by"
	if len(c.Certificate) > 1 {
		issued = "whose chain ends with the issuer"
	}
	return fmt.Sprintf("%s, %s %s", nameOf(leaf.RawSubject), issued, nameOf(last.RawIssuer))
}

// maxAuthorities bounds the names in an error: a server that trusts the authorities of its system sends hundreds.
const maxAuthorities = 10

// ofAuthorities returns " of " and the authorities that the server names, "" if it takes any.
func ofAuthorities(request *tls.CertificateRequestInfo) string {
	var names []string
	for i, raw := range request.AcceptableCAs {
		if i == maxAuthorities {
			names = append(names, fmt.Sprintf("%d others", len(request.AcceptableCAs)-i))
			break
		}
		names = append(names, nameOf(raw))
	}
	if len(names) == 0 {
		return ""
	}
	return " of " + strings.Join(names, ", ")
}

// nameOf returns a distinguished name in quotes, as "CN=ca,O=Example".
func nameOf(raw []byte) string {
	var name pkix.RDNSequence
	if rest, err := asn1.Unmarshal(raw, &name); err != nil || len(rest) > 0 {
		return "a name that cannot be read"
	}
	return fmt.Sprintf("%q", name.String())
}
