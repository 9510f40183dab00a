// Package chaos has the common parts of the tests with random faults: the seed, the faults, the trace that a failure
// prints, and four checks. A [Witness] checks what the server sees, a [History] what the clients saw, [Contexts] what
// the holders believe, and a [Guarded] resource checks fencing tokens. The package depends on no client: a fault
// strikes a proxy and a session.
package chaos
