// Package reply waits for replies of the server and says what their errors mean for a queue.
package reply
