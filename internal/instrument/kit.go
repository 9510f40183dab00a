package instrument

// Kit is a group of instruments, which one part of the library declares. Every [Scope] with a meter provider has one T.
type Kit[T any] struct{ index int }

// kits are the functions that declare the kits of the program. Packages add to them when they are initialized.
var kits []func(d *Declarer) any

// NewKit returns a kit whose instruments declare returns. It is called for a variable of a package.
func NewKit[T any](declare func(d *Declarer) *T) Kit[T] {
	kits = append(kits, func(d *Declarer) any { return declare(d) })
	return Kit[T]{len(kits) - 1}
}

// Of returns the instruments of s, or nil if metrics are off.
func (k Kit[T]) Of(s *Scope) *T {
	if s == nil {
		return nil
	}
	m := s.meters.get()
	if m == nil {
		return nil
	}
	return m.kits[k.index].(*T)
}
