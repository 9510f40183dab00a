package chaos

import (
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// History is the operations of clients on one thing. Each operation took effect at a moment between its start and its
// end.
type History struct {
	mu  sync.Mutex
	ops []porcupine.Operation
}

// Add adds an operation of a client.
func (h *History) Add(client int, op any, from, to time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: client, Input: op, Call: from.UnixNano(), Return: to.UnixNano(),
	})
}

// Open is the end of an operation that may take effect at any time.
func Open() time.Time { return time.Now().Add(24 * time.Hour) }

// checkLimit bounds the search for an order of a history.
const checkLimit = time.Minute

// Check fails the test if the model cannot have this history.
func (h *History) Check(s *Test, name string, model porcupine.Model) {
	s.tb.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if result := porcupine.CheckOperationsTimeout(model, h.ops, checkLimit); result != porcupine.Ok {
		s.Errorf("%s: %d operations are in no order that is allowed: %v", name, len(h.ops), result)
	}
}
