package zkserver

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Names of certificates as Java writes and reads them. The id of the scheme x509 is one.

// attributeTypes are the types of attributes that Java writes by name, all of RFC 2253.
var attributeTypes = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.10": "O", "2.5.4.11": "OU",
	"2.5.4.9": "STREET", "0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}

// attribute is a part of a name.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// attributesSET has a name by which the package asn1 knows it as a set.
type attributesSET []attribute

// subjectOf returns the subject of a certificate in the form of RFC 2253, as X500Principal.getName of Java does.
func subjectOf(cert *x509.Certificate) (string, error) {
	var name []attributesSET
	if _, err := asn1.Unmarshal(cert.RawSubject, &name); err != nil {
		return "", err
	}
	var parts []string
	for _, set := range slices.Backward(name) {
		attributes := make([]string, len(set))
		for i, a := range set {
			attributes[i] = a.String()
		}
		parts = append(parts, strings.Join(attributes, "+"))
	}
	return strings.Join(parts, ","), nil
}

// String returns the attribute as type=value. The value is in hex if its type has no name or it is no text.
func (a attribute) String() string {
	name, ok := attributeTypes[a.Type.String()]
	text, isText := textOf(a.Value)
	switch {
	case !ok:
		return a.Type.String() + "=#" + hex.EncodeToString(a.Value.FullBytes)
	case !isText:
		return name + "=#" + hex.EncodeToString(a.Value.FullBytes)
	}
	return name + "=" + escapeValue(text)
}

// textOf returns the text of a value, and false for one that is no text. Java 17 reads each as UTF-8.
func textOf(v asn1.RawValue) (string, bool) {
	if v.Class != asn1.ClassUniversal {
		return "", false
	}
	switch v.Tag {
	case asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagT61String, asn1.TagIA5String, asn1.TagGeneralString,
		asn1.TagBMPString:
		return strings.ToValidUTF8(string(v.Bytes), "\ufffd"), true
	}
	return "", false
}

// escapeValue escapes the characters that have a meaning, and blanks at the ends.
func escapeValue(s string) string {
	const special, blank = `,=+<>#;"\`, " \r"
	begin := len(s) - len(strings.TrimLeft(s, blank))
	end := len(strings.TrimRight(s, blank))
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == 0:
			b.WriteString(`\00`)
			continue
		case strings.ContainsRune(special, r), i < begin, i >= end:
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

var (
	// separated are the names of a subject: a separator is neither escaped nor in quotes.
	separated = regexp.MustCompile(`(?s)^(?:\\.|"(?:\\.|[^"\\])*"|[^\\",;+])*`)
	// typeAndValue is an attribute. Its value is in hex, in quotes, or escaped.
	typeAndValue = regexp.MustCompile(`(?s)^\s*(?i:` +
		`CN|C|L|ST?|O|OU|T|IP|STREET|DC|DNQ|DNQUALIFIER|SURNAME|GIVENNAME|INITIALS|GENERATION|EMAIL|EMAILADDRESS|UID|` +
		`SERIALNUMBER|(?:OID\.)?[0-2](?:\.[0-9]+)+)\s*=[ \n]*` +
		`(?:#(?:[0-9a-fA-F]{2})+|"(?:` + escape + `|[^"\\])*"[ \n]*|(?:` + escape + `|[^\\,+<>;"#])(?:` + escape +
		`|[^\\,+<>;"])*|)$`)
)

// escape is an escaped character or byte.
const escape = `\\(?:[0-9a-fA-F]{2}|[,=\n+<>#;\\" ])`

// validSubject reports whether Java can read the text as a name.
func validSubject(s string) bool {
	for s != "" {
		end := len(separated.FindString(s))
		if !typeAndValue.MatchString(s[:end]) {
			return false
		}
		if end == len(s) {
			return true
		}
		if !strings.ContainsRune(",;+", rune(s[end])) {
			return false // a quote or an escape that does not end
		}
		if s = s[end+1:]; s == "" {
			return false
		}
	}
	return true
}
