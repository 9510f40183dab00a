package framework_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gocurator/curator/framework"
)

// A file that a Java program or an authority has, and that is no PEM, is an error with its kind and the commands that
// make PEM of it.
func TestTLSFromFilesThatAreNotPEMNameKindAndCommands(t *testing.T) {
	t.Parallel()
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		must(t, err)
		return b
	}
	a := newAuthority(t)
	pair := a.issue(t, "me")
	good := newPEMFiles(t)
	good.setPair(pair)
	good.setCA(a)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	sec1, err := x509.MarshalECPrivateKey(newKey(t))
	must(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	certText := certPEM(a.cert)
	utf16 := []byte{0xff, 0xfe}
	for _, c := range certText {
		utf16 = append(utf16, c, 0)
	}
	jks := append(unhex("feedfeed 00000002 00000001"), make([]byte, 40)...)
	jceks := append(unhex("cececece 00000002 00000001"), make([]byte, 40)...)
	pfx := unhex("3082 04bf 020103 3082 0469 0609 2a864886f70d010701")
	short, indefinite := unhex("3020 020103 301b"), unhex("3080 020103 3080 0609 2a864886f70d010701")
	pbes2 := unhex("3081 ec 3057 0609 2a864886f70d01050d 304a")
	pbe := unhex("3081 e0 301c 060a 2a864886f70d010c0103 300e")
	signed := unhex("3082 0300 0609 2a864886f70d010702 a0820300")
	encrypted := pemOf(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: pbes2})
	dek := map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}
	older := pemOf(&pem.Block{Type: "RSA PRIVATE KEY", Headers: dek, Bytes: []byte("x")})
	const (
		keyStore = "-destkeystore client.p12 -deststoretype PKCS12 && openssl pkcs12 -in client.p12 "
		legacy   = "with -legacy"
	)
	for _, tt := range []struct {
		name, as string
		text     []byte
		wants    []string
	}{
		{"JKS", "cert", jks, []string{
			"a JKS store", "keytool -importkeystore -srcstoretype JKS -srckeystore FILE " + keyStore,
		}},
		{"JKS", "key", jks, []string{"a JKS store", keyStore + "-nodes -nocerts -out client.key"}},
		{"JKS", "ca", jks, []string{"a JKS store", "keytool -list -rfc -storetype JKS -keystore FILE > ca.pem"}},
		{"JKS", "list", jks, []string{"a JKS store", "not a revocation list"}},
		{"JCEKS", "cert", jceks, []string{"a JCEKS store", "-srcstoretype JCEKS"}},
		{"JCEKS", "ca", jceks, []string{"a JCEKS store", "keytool -list -rfc -storetype JCEKS -keystore FILE > ca.pem"}},
		{"PKCS12", "cert", pfx, []string{
			"a PKCS12 store", legacy, "openssl pkcs12 -in FILE -nokeys -clcerts > client.pem && " +
				"openssl pkcs12 -in FILE -nokeys -cacerts >> client.pem",
		}},
		{"PKCS12", "key", pfx, []string{
			"a PKCS12 store", legacy, "openssl pkcs12 -in FILE -nodes -nocerts -out client.key",
		}},
		{"PKCS12", "ca", pfx, []string{"a PKCS12 store", legacy, "openssl pkcs12 -in FILE -nokeys -out ca.pem"}},
		{"short PKCS12", "ca", short, []string{"a PKCS12 store"}},
		{"PKCS12 in BER", "ca", indefinite, []string{"a PKCS12 store"}},
		{"PKCS8 with a password", "key", encrypted, []string{
			"a key with a password", "without one: openssl pkey -in FILE -out client.key",
		}},
		{"key with a password behind a certificate", "key", append(certText, encrypted...), []string{
			"a key with a password",
		}},
		{"key of older versions with a password", "key", older, []string{
			"a key with a password", "openssl pkey -in FILE -out client.key",
		}},
		{"DER with PBES2", "key", pbes2, []string{
			"a key with a password, in DER", "openssl pkey -inform DER -in FILE -out client.key",
		}},
		{"DER with PBE", "key", pbe, []string{"a key with a password, in DER"}},
		{"PKCS8 in DER", "key", pkcs8, []string{"a key in DER", "openssl pkey -inform DER -in FILE -out client.key"}},
		{"SEC1 in DER", "key", sec1, []string{"a key in DER"}},
		{"PKCS1 in DER", "key", x509.MarshalPKCS1PrivateKey(rsaKey), []string{"a key in DER"}},
		{"DER", "cert", pair.Certificate[0], []string{
			"a certificate in DER", "openssl x509 -inform DER -in FILE -out client.pem",
		}},
		{"DER", "ca", a.cert.Raw, []string{"a certificate in DER", "openssl x509 -inform DER -in FILE -out ca.pem"}},
		{"DER", "list", a.cert.Raw, []string{"a certificate in DER", "not a revocation list"}},
		{"PKCS7 in DER", "ca", signed, []string{"openssl pkcs7 -inform DER -print_certs -in FILE -out ca.pem"}},
		{"PKCS7", "cert", pemOf(&pem.Block{Type: "PKCS7", Bytes: signed}), []string{
			"openssl pkcs7 -print_certs -in FILE -out client.pem",
		}},
		{"UTF-16", "ca", utf16, []string{"text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > ca.pem"}},
		{"empty", "ca", nil, []string{"no certificate in it"}},
		{"one byte", "ca", []byte{0x30}, []string{"no certificate in it"}},
		{"wrong length", "ca", []byte{0x30, 0xff, 2}, []string{"no certificate in it"}},
		{"short key", "key", unhex("3002 3000"), []string{"FILE: tls: failed to find any PEM data in key input"}},
	} {
		t.Run(tt.as+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "bob's file")
			write(t, file, bytes.Clone(tt.text))
			option := map[string]framework.Option{
				"cert": framework.WithTLSFromFiles(file, good.key, good.ca),
				"key":  framework.WithTLSFromFiles(good.cert, file, good.ca),
				"ca":   framework.WithTLSFromFiles("", "", file),
				"list": framework.WithTLSFromFiles("", "", good.ca, framework.WithRevocationLists(file)),
			}[tt.as]
			client, err := framework.New("127.0.0.1:1", option)
			must(t, err)
			defer client.Close() //nolint:errcheck // it has not started
			err = client.Start()
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), "'"+strings.ReplaceAll(file, "'", `'\''`)+"'", "FILE")
			got = strings.ReplaceAll(got, file, "FILE")
			for _, want := range append(tt.wants, "FILE") {
				if !strings.Contains(got, want) {
					t.Errorf("the error lacks %q: %s", want, got)
				}
			}
		})
	}
}
