package desired

// Steps returns at how many nodes the plans of r have looked so far.
func (r *Reconciler) Steps() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps
}
