package kerberos_test

import (
	"fmt"

	"github.com/gocurator/curator/sasl/kerberos"
)

// The mechanism reads the keytab when a client connects.
func ExampleFromKeytab() {
	login, err := kerberos.FromKeytab("/etc/security/alice.keytab", "alice@EXAMPLE.COM",
		kerberos.WithConfigFile("/etc/krb5.conf"),
		kerberos.WithServiceRealm("SERVERS.EXAMPLE.COM"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(login)
	// Output: GSSAPI (alice@EXAMPLE.COM, keytab /etc/security/alice.keytab)
}

// It prints where the secret is, never the secret.
func ExampleFromPassword() {
	login, err := kerberos.FromPassword("alice@EXAMPLE.COM", "correct horse")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v, %#v\n", login, login)
	// Output: GSSAPI (alice@EXAMPLE.COM, password), GSSAPI (alice@EXAMPLE.COM, password)
}
