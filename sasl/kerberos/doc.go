// Package kerberos logs in to servers by Kerberos, as Java's clients do with a Krb5LoginModule. It is a module of its
// own: the library does not need github.com/jcmturner/gokrb5, which has the messages and the ciphers.
//
// Before the first release, go get takes it only together with the library:
//
//	go get github.com/gocurator/curator github.com/gocurator/curator/sasl/kerberos
//
//	login, err := kerberos.FromKeytab("/etc/security/alice.keytab", "alice@EXAMPLE.COM")
//	if err != nil {
//		return err
//	}
//	client, err := framework.New("zk1.example.com,zk2.example.com", framework.WithSASL(login))
//
// The server then knows the client as sasl:alice@EXAMPLE.COM, which is also what an ACL of the scheme sasl has. In Java
// both follow the rules zookeeper.security.auth_to_local of the server.
//
// # The secret
//
// [FromKeytab], [FromPassword] and [FromCache] say where it is, and [FromLogin] takes that from a JAAS file. Keytab,
// cache and krb5.conf are read at each login: a change counts for the next connection. A file that cannot be read then,
// because somebody is writing it, does not matter as long as there is a valid ticket from before.
//
// A mechanism has no goroutine. It gets tickets when a connection needs them, and replaces those that have less than a
// fifth of their life before them; a session does not end with its ticket. Where no KDC answers it goes on with the
// tickets that it has as long as they are valid.
//
// # The principal of the server
//
// It is zookeeper/<host>, where the host is that of the connect string, or the name that its address has in the DNS:
// [WithoutCanonicalHost] turns that off. Its realm is what [domain_realm] of krb5.conf says of the host, or else the
// client's. [WithServicePrincipal], [WithServiceName] and [WithServiceRealm] change it. The settings
// dns_canonicalize_hostname and rdns do not count, as in Java. A server in another realm is found through the KDCs on
// the way there.
//
// # Errors
//
// They name the principal, and what to do. One that matches zk.ErrAuthFailed needs somebody to do something: a wrong
// password or keytab, an unknown principal of the client or of the server, a ticket that has expired, clocks that
// differ. Others pass, as that no KDC answers.
//
// # What is read of krb5.conf
//
// default_realm, dns_lookup_kdc, clockskew, ticket_lifetime, default_tkt_enctypes, default_tgs_enctypes and
// permitted_enctypes of [libdefaults]; kdc of [realms]; [domain_realm]; include and includedir. KDCs are asked by TCP
// first. Without a kdc for the realm they are looked up in the DNS.
//
// # Limits
//
// Servers need keys for AES. So do clients, unless krb5.conf names rc4-hmac. A ticket cache has to be a file: KEYRING,
// KCM and DIR are those of MIT's library alone. There is no delegation, and SASL protects the login, not what follows:
// use TLS for that.
//
// In Java: com.sun.security.auth.module.Krb5LoginModule, and org.apache.zookeeper.client.ZooKeeperSaslClient.
package kerberos
