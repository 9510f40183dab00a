// Package storm is what the tests with random faults have in common: the seed, the faults and the trace of them that a
// failure prints, and the judges of what happened meanwhile: a [Witness] of what the server sees, a [History] of what
// the clients saw, [Contexts] of what the holders believe, and a [Guarded] resource that looks at tokens. It knows no
// client: who is disturbed is a proxy and a session.
package storm
