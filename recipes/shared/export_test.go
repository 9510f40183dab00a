package shared

// AtEnd has Close call fn when it has ended the contexts of the value.
func (v *SharedValue) AtEnd(fn func()) {
	end := v.end
	v.end = func(cause error) {
		end(cause)
		fn()
	}
}
