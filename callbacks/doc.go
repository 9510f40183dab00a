// Package callbacks defines the functions that a client calls back: results of background operations, watch events, and
// listeners.
//
// # Where callbacks run
//
//  1. Background callbacks, watchers and the listeners of a client run one at a time, on the client's dispatcher
//     goroutine, in the order in which the answers and events came from the server.
//  2. Connection state listeners run one at a time on a goroutine of their own, in the order of the states.
//  3. A callback may call the client, also in the foreground, and recipes that wait. While it blocks, the callbacks
//     behind it wait; the connection, the session, foreground operations, recipes and other clients do not.
//  4. What the library itself does with an answer, an event or a state comes before the callbacks for it and for what
//     follows: a callback sees a hold that its node has lost as lost.
//  5. A panic in a callback is recovered and reported to the client's unhandled-error listeners.
package callbacks
