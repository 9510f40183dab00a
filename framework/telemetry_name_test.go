package framework_test

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestTelemetryNamedClientsHaveOwnSeries(t *testing.T) {
	t.Parallel()
	onTwoServers(t, func(t *testing.T, one, two testenv.Place, chroot string, dial framework.Option) {
		o := observe.New(t)
		reader := connectClient(t, one.Addr()+chroot, observed(o, dial, framework.WithName("reader"))...)
		writer := newClient(t, two.Addr()+chroot, observed(o, dial, framework.WithName("writer"))...)
		states := record(writer)
		start(t, writer)
		states.want(t, connected)
		two.Faults().CutAll()
		states.want(t, suspended, reconnected)
		must(t, writer.Reset())
		states.want(t, lost, reconnected)
		exists(t, reader, "/")

		// The listeners of a client are called before telemetry has counted the change.
		changes := `curator.client.name=reader,curator.connection.state=connected 1
curator.client.name=writer,curator.connection.state=connected 1
curator.client.name=writer,curator.connection.state=lost 1
curator.client.name=writer,curator.connection.state=reconnected 2
curator.client.name=writer,curator.connection.state=suspended 1
`
		counted := func() bool {
			const ofReader = "curator.client.name=reader,curator.connection.state=suspended 1\n"
			return changes == stateChanges(t, o, ofReader, "", "suspended 2", "suspended 1")
		}
		testenv.Eventually(t, counted, "the changes")
		wantValues(t, o, "curator.session.expirations", "curator.client.name=writer 1\n")
		wantValues(t, o, "curator.connection.outage.duration", "curator.client.name=writer,curator.outcome=reconnected 1\n")
		operations := o.Values(t, "db.client.operation.duration")
		if !strings.Contains(operations, "curator.client.name=reader,db.operation.name=exists") {
			t.Errorf("the operations are %s", operations)
		}
		for _, name := range []string{"reader", "writer"} {
			if got := o.Values(t, "curator.client.operations.pending"); !strings.Contains(got, "curator.client.name="+name) {
				t.Errorf("the gauges of %s are not among %s", name, got)
			}
		}
		if got := observe.Attribute(o.Named("exists")[0], "curator.client.name").AsString(); got != "reader" {
			t.Errorf("the span is of client %q", got)
		}
		o.WantBounded(t)
	})
}
