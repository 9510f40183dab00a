package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// asksOfProvider is an event.
const asksOfProvider = "asks of a provider that fails"

// provider is the ACL provider of a process, code of the program that may fail.
type provider struct {
	world *world

	mu   sync.Mutex
	fail func()   // nil if all is well
	of   []string // paths for whose nodes it fails
}

// DefaultACL returns the ACL of all nodes without one of their own.
func (p *provider) DefaultACL() []zk.ACL { return zk.WorldACL(zk.PermAll) }

// ACLForPath returns nil: the default, if the provider is well for the path.
func (p *provider) ACLForPath(path string) []zk.ACL {
	p.mu.Lock()
	fail, of := p.fail, p.of
	p.mu.Unlock()
	if fail != nil && slices.ContainsFunc(of, func(root string) bool { return strings.HasPrefix(path, root) }) {
		p.world.report.count(asksOfProvider)
		fail()
	}
	return nil
}

// set sets what the provider does for the nodes below some paths.
func (p *provider) set(fail func(), of ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail, p.of = fail, of
}

// providerFaults affect what the library asks the program for.
var providerFaults = []fault{
	{name: "provider panics", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.failProvider(random, func(<-chan struct{}) { panic("the provider panics") }, "/")
	}},
}

// keptNodePaths are the paths whose nodes the library creates on goroutines of its own. On that of an actor, a provider
// that blocks or ends it would stop the actor.
var keptNodePaths = []string{"/nodes", "/group", "/services"}

// libraryProviderFaults affect what the library asks the program for on goroutines of its own.
var libraryProviderFaults = []fault{
	{name: "provider ends its goroutine", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.failProvider(random, func(<-chan struct{}) { runtime.Goexit() }, keptNodePaths...)
	}},
	{name: "provider blocks", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.failProvider(random, func(over <-chan struct{}) { <-over }, keptNodePaths...)
	}},
}

// failProvider lets the provider of a process fail.
func (w *world) failProvider(
	random *rand.Rand, fail func(over <-chan struct{}), of ...string,
) (what string, undo func()) {
	p := w.pickProcess(random)
	if p == nil {
		return "", nil
	}
	over, accepted := make(chan struct{}), w.refuse()
	p.acls.set(func() { fail(over) }, of...)
	return fmt.Sprintf("of %s", p.name), func() {
		p.acls.set(nil)
		close(over)
		accepted()
	}
}
