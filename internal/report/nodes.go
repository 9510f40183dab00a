package report

import (
	"context"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

type nodesInstruments struct {
	desired instrument.UpDownCounter
	missing instrument.UpDownCounter
	refused instrument.UpDownCounter
}

var nodesKit = instrument.NewKit(func(d *instrument.Declarer) *nodesInstruments {
	return &nodesInstruments{
		desired: d.UpDownCounter("curator.nodes.desired", "{node}", "Nodes that should be there."),
		missing: d.UpDownCounter("curator.nodes.missing", "{node}", "Nodes that should be there and are not."),
		refused: d.UpDownCounter("curator.nodes.refused", "{node}",
			"Nodes that should be there and are refused: by the servers, or because another client has the node."),
	}
})

// Nodes records the state of a node that should be there.
type Nodes struct{ r *resource }

// NewNodes returns the report of a node. name is the name that the user gives it, or "". The report is nil, and does
// nothing, while telemetry is off: there may be many nodes.
func NewNodes(t *telemetry.Telemetry, recipe, name, path string) Nodes {
	if !t.On() {
		return Nodes{}
	}
	return Nodes{&resource{t: t, key: seriesKey{recipe: recipe, name: name}, path: path}}
}

// Desired adds n to the number of nodes that should be there.
func (o Nodes) Desired(ctx context.Context, n int) {
	if in := o.instruments(); in != nil {
		in.desired.Add(ctx, n, o.r.measures().all)
	}
}

// Missing adds n to the number of nodes that should be there and are not.
func (o Nodes) Missing(ctx context.Context, n int) {
	if in := o.instruments(); in != nil {
		in.missing.Add(ctx, n, o.r.measures().all)
	}
}

// Refused adds n to the number of nodes that are refused.
func (o Nodes) Refused(ctx context.Context, n int) {
	if in := o.instruments(); in != nil {
		in.refused.Add(ctx, n, o.r.measures().all)
	}
}

func (o Nodes) instruments() *nodesInstruments {
	if o.r == nil {
		return nil
	}
	return nodesKit.Of(o.r.scope())
}
