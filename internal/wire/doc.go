// Package wire speaks the ZooKeeper protocol beside go-zookeeper on go-zookeeper's own connection.
//
// A [Conn] is one session. go-zookeeper keeps what it does well: the host loop, dialing, the connect handshake,
// the session id and password, pings and the close request. Every operation, the watches and the authentication are
// frames of ours, because the library has no asynchronous call, no order between goroutines, and lacks half of
// the opcodes.
//
// # Facts that callers may rely on
//
//  1. The order of [Conn.Submit] is the order on the wire is the order of completion.
//  2. Every accepted request is answered exactly once: by the server, or with [jute.ErrConnectionLoss] when its
//     connection ends first.
//  3. Only the goroutine that reads the connection completes requests, delivers watch events and reports states.
//     It never writes and never runs code that may block, but for the login, before there are requests.
//  4. A request belongs to one session: nothing accepted by one Conn is executed in the session of another.
//  5. On a new connection of the same session the login goes first, then the credentials, then the watches, then
//     requests; so a watch event that was missed is seen before newer data.
package wire
