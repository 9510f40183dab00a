package queue

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/zkpath"
)

// How much one request puts, and how many of them are under way: while a server is at one, the next is there.
const (
	maxShipments    = 2
	maxShipmentPuts = 50
	maxShipmentSize = 64 << 10 // bytes of data, far from what a server accepts
)

// shipment is what one request puts: a node, or several in a transaction, which a server is done with much sooner than
// with one after the other.
type shipment struct {
	puts []*putting
	one  builders.Future[string]
	all  builders.Future[[]callbacks.OperationResult]
}

// fitting returns how many of the puts go into a shipment.
func fitting(puts []*putting) (n int) {
	size := 0
	for n < min(len(puts), maxShipmentPuts) && (n == 0 || size+len(puts[n].data) <= maxShipmentSize) {
		size += len(puts[n].data)
		n++
	}
	return n
}

func (s *shipment) submit(flight context.Context, client Client, queue string) {
	flight = s.causedIn(flight)
	if len(s.puts) == 1 {
		x := s.puts[0]
		s.one = sequential(client).Submit(flight, zkpath.Join(queue, x.prefix), x.data)
		return
	}
	create := client.TransactionOp().Create().WithMode(builders.PersistentSequential)
	ops := make([]builders.TransactionOperation, len(s.puts))
	for i, x := range s.puts {
		ops[i] = create.ForPath(zkpath.Join(queue, x.prefix), x.data)
	}
	s.all = client.Transaction().Submit(flight, ops...)
}

// causedIn returns flight in the trace of the put, or linked to those of all.
func (s *shipment) causedIn(flight context.Context) context.Context {
	var causes []context.Context
	for _, x := range s.puts {
		if x.cause != nil {
			causes = append(causes, x.cause)
		}
	}
	if len(s.puts) == 1 && len(causes) == 1 {
		return telemetry.Traced(flight, causes[0])
	}
	return telemetry.WithLinks(flight, causes...)
}

// answered returns a channel that is closed when there is an answer.
func (s *shipment) answered() <-chan struct{} {
	if len(s.puts) == 1 {
		return s.one.Done()
	}
	return s.all.Done()
}

// wait waits for the answer: the paths of the nodes, of all or of none.
func (s *shipment) wait(ctx context.Context) (paths []string, err error) {
	if len(s.puts) == 1 {
		path, err := s.one.Wait(ctx)
		return []string{path}, err
	}
	results, err := s.all.Wait(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		paths = append(paths, r.ResultPath)
	}
	return paths, nil
}
