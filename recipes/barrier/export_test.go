package barrier

// SetName gives a member the name that its node has from now on: the one with the lowest goes last.
func (d *DistributedDoubleBarrier) SetName(name string) { d.newName = func() string { return name } }
