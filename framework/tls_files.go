package framework

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// WithTLSFromFiles uses TLS with a certificate, a key and the certificates of authorities from PEM files. Without a
// certificate and its key ("") the client does not say who it is; without ca the authorities of the system are trusted.
// For a JKS or PKCS12 store, a key with a password or a file in DER the error has the commands that make PEM of it. It
// replaces [WithTLS]. The file of the certificate also has those between it and an authority of the servers: otherwise
// it may not be sent, see [WithRequiredClientCertificate].
//
// The files are read again for a new connection if one of them has changed, so a rotation needs no new client.
// Certificate, key and authorities are from one moment: while they do not fit each other, or cannot be read, the client
// uses those of before, and logs why, once. Connections that are open stay. Start returns an error if the files cannot
// be read the first time. In Java: zookeeper.ssl.keyStore.location and zookeeper.ssl.trustStore.location, read once.
func WithTLSFromFiles(cert, key, ca string, opts ...TLSOption) Option {
	return option(func(c *config) {
		f := &tlsFiles{cert: cert, key: key, ca: ca}
		for _, o := range opts {
			if o != nil {
				o.applyTLS(f)
			}
		}
		c.useTLS, c.tls, c.files = true, nil, f
	})
}

// TLSOption configures [WithTLSFromFiles].
type TLSOption interface{ applyTLS(f *tlsFiles) }

type tlsOption func(*tlsFiles)

func (o tlsOption) applyTLS(f *tlsFiles) { o(f) }

// WithServerName sets the name that the certificates of the servers must have; the default is the host of the connect
// string.
func WithServerName(name string) TLSOption {
	return tlsOption(func(f *tlsFiles) { f.serverName = name })
}

// WithoutHostnameVerification accepts a certificate of a trusted authority whatever its name is. In Java:
// zookeeper.ssl.hostnameVerification=false.
func WithoutHostnameVerification() TLSOption {
	return tlsOption(func(f *tlsFiles) { f.anyName = true })
}

// WithRevocationLists refuses servers whose certificate, or that of an authority between theirs and a trusted one, is
// in a revocation list: files in PEM or DER, read as the others are. Each of these certificates needs a list of its
// issuer that is signed by it, not outdated, and for all its certificates: with a critical extension a list only
// revokes. In Java: zookeeper.ssl.crl, with lists from the network.
func WithRevocationLists(files ...string) TLSOption {
	files = slices.Clone(files)
	return tlsOption(func(f *tlsFiles) { f.lists = append(f.lists, files...) })
}

// tlsFiles gives each new connection what the files contain.
type tlsFiles struct {
	cert, key, ca string
	lists         []string
	serverName    string
	anyName       bool
	logger        *slog.Logger

	mu      sync.Mutex
	now     *tlsMaterial // nil before the first read
	is      []os.FileInfo
	trouble string // the error that was logged last; empty if the files are fine
}

// tlsMaterial is what the files contained at one moment.
type tlsMaterial struct {
	pair  *tls.Certificate // nil if there is none
	roots *x509.CertPool   // nil for those of the system
	lists []*x509.RevocationList
}

func (f *tlsFiles) wrong() string {
	switch {
	case (f.cert == "") != (f.key == ""):
		return "TLS: a certificate and its key need each other"
	case f.anyName && f.serverName != "":
		return "TLS: both a server name and none"
	}
	return ""
}

// current returns what the files contain, or what they did when they were last in order.
func (f *tlsFiles) current() (*tlsMaterial, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if is, err := f.stat(); err == nil && f.now != nil && unchanged(f.is, is) {
		f.trouble = ""
		return f.now, nil
	}
	material, is, err := f.read()
	switch {
	case err == nil:
		f.now, f.is, f.trouble = material, is, ""
	case f.now == nil:
		return nil, fmt.Errorf("TLS files: %w", err)
	case f.trouble != err.Error():
		f.trouble = err.Error()
		f.logger.Warn("TLS files: those of before are used", "error", err)
	}
	return f.now, nil
}

// tries is how often files are read that change meanwhile.
const tries = 5

// read reads the files at one moment: none of them has changed from before the first to behind the last. A Kubernetes
// secret changes all its files at once, by one link, which may happen between two of the reads.
func (f *tlsFiles) read() (*tlsMaterial, []os.FileInfo, error) {
	for range tries {
		before, err := f.stat()
		if err != nil {
			return nil, nil, err
		}
		material, err := f.parse()
		after, failed := f.stat()
		switch {
		case failed != nil:
			return nil, nil, failed
		case !unchanged(before, after):
			continue
		}
		return material, after, err
	}
	return nil, nil, errors.New("they change all the time")
}

// names returns the files that there are.
func (f *tlsFiles) names() []string {
	var names []string
	for _, name := range append([]string{f.cert, f.key, f.ca}, f.lists...) {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (f *tlsFiles) stat() ([]os.FileInfo, error) {
	var is []os.FileInfo
	for _, name := range f.names() {
		info, err := os.Stat(name) // of the target of a link
		if err != nil {
			return nil, err
		}
		is = append(is, info)
	}
	return is, nil
}

func unchanged(before, after []os.FileInfo) bool {
	for i := range before {
		a, b := before[i], after[i]
		if !os.SameFile(a, b) || !a.ModTime().Equal(b.ModTime()) || a.Size() != b.Size() {
			return false
		}
	}
	return true
}

func (f *tlsFiles) parse() (*tlsMaterial, error) {
	material := &tlsMaterial{}
	if f.cert != "" {
		pair, err := readPair(f.cert, f.key)
		if err != nil {
			return nil, err
		}
		material.pair = &pair
	}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, err
		}
		material.roots = x509.NewCertPool()
		if !material.roots.AppendCertsFromPEM(text) {
			if err := notPEM(f.ca, text, authoritiesFile); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%s: no certificate in it", f.ca)
		}
	}
	for _, name := range f.lists {
		lists, err := readRevocationLists(name)
		if err != nil {
			return nil, err
		}
		material.lists = append(material.lists, lists...)
	}
	return material, nil
}

// readPair reads a certificate, with those between it and an authority, and its key.
func readPair(cert, key string) (tls.Certificate, error) {
	certText, err := os.ReadFile(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyText, err := os.ReadFile(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(certText, keyText)
	if err == nil {
		return pair, nil
	}
	if err := notPEM(cert, certText, certificateFile); err != nil {
		return tls.Certificate{}, err
	}
	if err := notPEM(key, keyText, keyFile); err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{}, fmt.Errorf("%s and %s: %w", cert, key, err)
}

// readRevocationLists reads the lists of a file: one in DER, or some in PEM.
func readRevocationLists(name string) ([]*x509.RevocationList, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(text, []byte("-----BEGIN")) {
		list, err := x509.ParseRevocationList(text)
		if err != nil {
			return nil, cmp.Or(notPEM(name, text, listFile), fmt.Errorf("%s: %w", name, err))
		}
		return []*x509.RevocationList{list}, nil
	}
	var lists []*x509.RevocationList
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 {
		return nil, fmt.Errorf("%s: no revocation list in it", name)
	}
	return lists, nil
}

// config returns the configuration of one connection.
func (f *tlsFiles) config(host string) (*tls.Config, error) {
	material, err := f.current()
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{RootCAs: material.roots, ServerName: host}
	if f.serverName != "" {
		conf.ServerName = f.serverName
	}
	if material.pair != nil {
		conf.Certificates = []tls.Certificate{*material.pair}
	}
	if f.anyName { // the chain is verified all the same
		conf.InsecureSkipVerify = true
		conf.VerifyConnection = func(s tls.ConnectionState) error {
			chains, err := verifyChain(s, material.roots)
			if err != nil {
				return err
			}
			return material.checkRevoked(chains)
		}
		return conf, nil
	}
	conf.VerifyConnection = func(s tls.ConnectionState) error { return material.checkRevoked(s.VerifiedChains) }
	return conf, nil
}

// verifyChain verifies the certificate of a server but for its name.
func verifyChain(s tls.ConnectionState, roots *x509.CertPool) ([][]*x509.Certificate, error) {
	between := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	return s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
}

// checkRevoked returns nil if one of the chains has no certificate that is revoked.
func (m *tlsMaterial) checkRevoked(chains [][]*x509.Certificate) error {
	if len(m.lists) == 0 {
		return nil
	}
	var refused error
	for _, chain := range chains {
		err := m.checkChain(chain)
		if err == nil {
			return nil
		}
		refused = errors.Join(refused, err)
	}
	return refused
}

func (m *tlsMaterial) checkChain(chain []*x509.Certificate) error {
	for i := range len(chain) - 1 { // the last one is trusted by itself
		if err := m.checkCertificate(chain[i], chain[i+1], time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (m *tlsMaterial) checkCertificate(cert, issuer *x509.Certificate, now time.Time) error {
	known := false
	for _, list := range m.lists {
		if !bytes.Equal(list.RawIssuer, issuer.RawSubject) || list.CheckSignatureFrom(issuer) != nil {
			continue
		}
		for _, entry := range list.RevokedCertificateEntries {
			if entry.SerialNumber.Cmp(cert.SerialNumber) == 0 {
				return fmt.Errorf("the certificate of %q is revoked since %v", cert.Subject, entry.RevocationTime)
			}
		}
		// A list of some certificates says so in a critical extension.
		isWhole := !slices.ContainsFunc(list.Extensions, func(e pkix.Extension) bool { return e.Critical })
		known = known || isWhole && (list.NextUpdate.IsZero() || now.Before(list.NextUpdate))
	}
	if !known {
		return fmt.Errorf("no current revocation list of %q for all its certificates", issuer.Subject)
	}
	return nil
}
