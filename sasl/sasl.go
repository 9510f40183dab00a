// Package sasl is how a client logs in to servers that ask for SASL. It has the interface of a mechanism, and reads the
// JAAS files of Java programs.
//
// Mechanisms are packages of their own: [github.com/gocurator/curator/sasl/digest] has DIGEST-MD5, and the module
// github.com/gocurator/curator/sasl/kerberos has Kerberos. A client gets one by framework.WithSASL.
package sasl

import "context"

// Mechanism logs in. One Mechanism serves all connections of a client, and is safe for concurrent use. The way it is
// printed must not show secrets.
type Mechanism interface {
	// Start begins the login of a new connection to a server. The host is as in the connect string, without the port.
	// It may ask others, as for a ticket; ctx bounds that. It is called before the connection is opened. An error that
	// matches zk.ErrAuthFailed says that there is no login with these credentials; with others the client tries again
	// as if it could not connect.
	Start(ctx context.Context, host string) (Exchange, error)
}

// Exchange is the login of one connection: one call at a time, perhaps on several goroutines. A call that does not
// return in the time for the connect, panics or ends its goroutine ends the connection, and there is no further one.
type Exchange interface {
	// Next takes the token of the server, and returns the next one for it. The first call gets nil, before the server
	// was asked. Later the token is nil if the server has sent none, which is not the same as an empty one. If done is
	// true, the login is complete and nothing is sent. An error ends the connection. One that matches zk.ErrAuthFailed
	// says that the server has failed to prove that it knows the secret, or does not agree to what is asked of it.
	Next(token []byte) (reply []byte, done bool, err error)
}
