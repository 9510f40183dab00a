package jute

// Reconfig is the change of the ensemble in a reconfig request. An empty list is sent as Java's null, which
// leaves that part alone.
type Reconfig struct {
	Joining    string // servers to add or change, comma separated, in the syntax of zoo.cfg
	Leaving    string // ids of servers to remove, comma separated
	NewMembers string // the whole new ensemble; excludes the other two
	ConfigID   int64  // the configuration this must follow on, -1 for any
}

func appendReconfig(b []byte, r *Reconfig) []byte {
	if r == nil {
		r = &Reconfig{ConfigID: -1}
	}
	b = appendNullable(b, r.Joining)
	b = appendNullable(b, r.Leaving)
	b = appendNullable(b, r.NewMembers)
	return AppendInt64(b, r.ConfigID)
}

func (d *Decoder) reconfig() *Reconfig {
	return &Reconfig{Joining: d.String(), Leaving: d.String(), NewMembers: d.String(), ConfigID: d.Int64()}
}
