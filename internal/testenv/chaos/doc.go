// Package chaos has the common parts of the tests with random faults: the seed, the faults, the trace that a failure
// prints, and four checks. A [Witness] checks the nodes of the server, a [History] the operations of the clients,
// [Contexts] the contexts of the holders, and a [Guarded] resource the fencing tokens. The package depends on no
// client: a fault strikes a proxy and a session.
package chaos
