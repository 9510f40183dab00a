package wire

import (
	"errors"
	"fmt"

	"github.com/gocurator/curator/internal/jute"
)

// Request is one request and, once answered, its answer. The caller does not touch it between Submit and the call of
// its Handler.
type Request struct {
	jute.Request
	// Watcher is registered as soon as the server has set the watch. A removal removes this watcher; nil means all.
	Watcher Watcher
	// Handler gets the answer.
	Handler Handler
	// Flight, if it is set, keeps the request on the connection of the flight's first request.
	Flight *Flight

	// Reply is the answer if Err is nil. A failed multi has its results too.
	Reply jute.Reply
	Err   error // in flight, the error that replaces the answer, if it is replaced
	Zxid  int64

	xid        int32
	generation uint32 // watcherTraffic.generation when the request was sent
	sent       int64  // when it was encoded, in ns since Conn.epoch
	size       int32  // bytes of its frame
	received   int32  // bytes of the answer, without its header
	server     string // the server that it was sent to
	// Absolute paths are outside the chroot: /zookeeper/config. It is beside the other small fields, because an outage may
	// leave many requests in memory.
	Absolute bool

	waits      bool // it is in link.waiting
	encoded    bool // it was encoded in any attempt
	wrote      bool // it was encoded as a write in any attempt
	replaced   bool // another request was sent in its place: see Hosts.lacks
	hangUps    uint8
	inFlight   bool
	prev, next *Request
}

// WasSent reports whether r was sent in any attempt.
func (r *Request) WasSent() bool { return r.encoded }

// EndsConnections reports whether servers have ended many connections in a row at r.
func (r *Request) EndsConnections() bool { return r.hangUps >= manyHangUps }

// Sizes returns the sizes of r and its answer on the wire in bytes; 0 if it was not sent or answered.
func (r *Request) Sizes() (request, response int) { return int(r.size), int(r.received) }

// Server returns the address of the server that r was sent to, "" if it never was.
func (r *Request) Server() string { return r.server }

// Handler is called once, when r has its answer. It runs on the goroutine that reads the connection: it must not
// block, and it may submit.
type Handler interface {
	Answered(r *Request)
}

// serverPath returns the path of r with the chroot.
func (r *Request) serverPath(c *Conn) string { return withChroot(r.Path, r.chroot(c)) }

func (r *Request) chroot(c *Conn) string {
	if r.Absolute {
		return ""
	}
	return c.cfg.Chroot
}

// answer fills r from an answer of the server. An answer that cannot be read leaves the effect open, like a lost one;
// the error has the reason. skipped is the size of an answer that was too large to read.
func (r *Request) answer(c *Conn, h jute.ReplyHeader, body []byte, skipped int) error {
	r.Zxid, r.received = h.Zxid, int32(max(len(body), skipped))
	if r.replaced {
		return nil
	}
	if r.Err = h.Code.Err(); r.Err != nil {
		return nil
	}
	if skipped > 0 {
		r.Err = fmt.Errorf("%w: %d bytes, the limit is %d", ErrReplyTooLarge, skipped, c.cfg.maxReply())
		return nil
	}
	switch err := r.DecodeReply(body, &r.Reply); {
	case errors.Is(err, jute.ErrMarshalling):
		r.Err = jute.ErrConnectionLoss
		return fmt.Errorf("wire: answer to %s: %w", r.Op, err)
	case err != nil:
		r.Err = err
		return nil
	}
	if chroot := r.chroot(c); chroot != "" {
		r.Reply.Path = stripChroot(r.Reply.Path, chroot)
		for i := range r.Reply.Results {
			r.Reply.Results[i].Path = stripChroot(r.Reply.Results[i].Path, chroot)
		}
		for i, p := range r.Reply.Children {
			if r.Op == jute.OpGetEphemerals { // the children of this answer are full paths
				r.Reply.Children[i] = stripChroot(p, chroot)
			}
		}
	}
	// A multi is answered with success and its failure is in the results.
	if r.Op == jute.OpMulti {
		for _, res := range r.Reply.Results {
			// The operations before and after the failed one have codes for that.
			if res.Op == jute.OpError && res.Code != jute.CodeOK && res.Code != jute.CodeRuntimeInconsistency {
				r.Err = res.Code.Err()
				break
			}
		}
	}
	return nil
}

func stripChroot(path, chroot string) string {
	if len(path) < len(chroot) || path[:len(chroot)] != chroot {
		return path
	}
	switch rest := path[len(chroot):]; {
	case rest == "":
		return "/"
	case rest[0] == '/':
		return rest
	}
	return path
}

func withChroot(path, chroot string) string {
	switch {
	case chroot == "":
		return path
	case path == "/":
		return chroot
	}
	return chroot + path
}
