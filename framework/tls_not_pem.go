package framework

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// pemFile is what a PEM file is for.
type pemFile int

const (
	certificateFile pemFile = iota
	keyFile
	authoritiesFile
	listFile
)

// notPEM returns an error that says which kind of file the text is, and the commands that make PEM of it; nil if it is
// another kind than those that Java programs and authorities have.
func notPEM(name string, text []byte, as pemFile) error {
	file := shellWord(name)
	kind, commands := "", ""
	switch {
	case bytes.HasPrefix(text, []byte{0xfe, 0xed, 0xfe, 0xed}):
		kind, commands = "a JKS store", fromJavaStore(file, "JKS", as)
	case bytes.HasPrefix(text, []byte{0xce, 0xce, 0xce, 0xce}):
		kind, commands = "a JCEKS store", fromJavaStore(file, "JCEKS", as)
	case isPKCS12(text):
		kind, commands = "a PKCS12 store", fromPKCS12(file, as)+" (with -legacy, if openssl does not support its ciphers)"
	case isPKCS7(text):
		kind, commands = "PKCS7 in DER", "openssl pkcs7 -inform DER -print_certs -in "+file+" -out "+as.output()
	case bytes.Contains(text, []byte("-----BEGIN PKCS7-----")):
		kind, commands = "PKCS7", "openssl pkcs7 -print_certs -in "+file+" -out "+as.output()
	case isEncryptedKey(text):
		kind, commands = "a key with a password, in DER", "openssl pkey -inform DER -in "+file+" -out client.key"
	case isKey(text):
		kind, commands = "a key in DER", "openssl pkey -inform DER -in "+file+" -out client.key"
	case isCertificate(text):
		kind, commands = "a certificate in DER", "openssl x509 -inform DER -in "+file+" -out "+as.output()
	case as == keyFile && hasEncryptedKey(text):
		kind, commands = "a key with a password", "openssl pkey -in "+file+" -out client.key"
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}), bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		kind, commands = "text in UTF-16", "iconv -f UTF-16 -t UTF-8 "+file+" > "+as.output()
	}
	switch {
	case kind == "":
		return nil
	case as == listFile:
		return fmt.Errorf("%s: it is %s, not a revocation list", name, kind)
	case as == keyFile && strings.HasPrefix(kind, "a key with a password"):
		return fmt.Errorf("%s: it is %s; this writes it as PEM without one: %s", name, kind, commands)
	}
	return fmt.Errorf("%s: it is %s; this makes PEM of it: %s", name, kind, commands)
}

// output returns the name of a file in commands.
func (as pemFile) output() string {
	return map[pemFile]string{
		certificateFile: "client.pem", keyFile: "client.key", authoritiesFile: "ca.pem", listFile: "list.pem",
	}[as]
}

// fromJavaStore returns the commands that make PEM of a store that keytool alone reads.
func fromJavaStore(file, kind string, as pemFile) string {
	if as == authoritiesFile {
		return "keytool -list -rfc -storetype " + kind + " -keystore " + file + " > ca.pem"
	}
	return "keytool -importkeystore -srcstoretype " + kind + " -srckeystore " + file +
		" -destkeystore client.p12 -deststoretype PKCS12 && " + fromPKCS12("client.p12", as)
}

// fromPKCS12 returns the commands that make PEM of a PKCS12 store. The certificate of a key has to be the first in its
// file, with those between it and an authority behind it.
func fromPKCS12(file string, as pemFile) string {
	switch as {
	case keyFile:
		return "openssl pkcs12 -in " + file + " -nodes -nocerts -out client.key"
	case certificateFile:
		return "openssl pkcs12 -in " + file + " -nokeys -clcerts > client.pem && openssl pkcs12 -in " + file +
			" -nokeys -cacerts >> client.pem"
	}
	return "openssl pkcs12 -in " + file + " -nokeys -out " + as.output()
}

// shellWord returns a name as a word for a shell.
func shellWord(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%", r)
	}
	if strings.TrimFunc(name, plain) == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// inSequence returns what is in an ASN.1 sequence, whose length may be indefinite; nil if b is none.
func inSequence(b []byte) []byte {
	if len(b) < 2 || b[0] != 0x30 {
		return nil
	}
	head := 2
	if b[1] > 0x80 {
		head += int(b[1] & 0x7f)
	}
	return b[min(head, len(b)):]
}

// isPKCS12 reports whether b begins as a PFX of version 3.
func isPKCS12(b []byte) bool { return bytes.HasPrefix(inSequence(b), []byte{2, 1, 3}) }

// isPKCS7 reports whether b is signedData, which has certificates.
func isPKCS7(b []byte) bool {
	return bytes.HasPrefix(inSequence(b), []byte{6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2})
}

// isEncryptedKey reports whether b begins with an algorithm of PKCS5 or PKCS12 for encryption with a password.
func isEncryptedKey(b []byte) bool {
	algorithm := inSequence(inSequence(b))
	if len(algorithm) < 2 || algorithm[0] != 6 {
		return false
	}
	pkcs := []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1}
	return bytes.HasPrefix(algorithm[2:], append(pkcs, 5)) || bytes.HasPrefix(algorithm[2:], append(pkcs, 12))
}

func isKey(b []byte) bool {
	if _, err := x509.ParsePKCS8PrivateKey(b); err == nil {
		return true
	}
	if _, err := x509.ParsePKCS1PrivateKey(b); err == nil {
		return true
	}
	_, err := x509.ParseECPrivateKey(b)
	return err == nil
}

func isCertificate(b []byte) bool {
	_, err := x509.ParseCertificate(b)
	return err == nil
}

// hasEncryptedKey reports whether the first key of a PEM file is encrypted, in the form of PKCS8 or in that of older
// versions of OpenSSL.
func hasEncryptedKey(text []byte) bool {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED")
		}
	}
	return false
}
