package builders

import (
	"fmt"
	"runtime/debug"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

// OpenACL gives everybody everything: the default of a client. In Java: ZooDefs.Ids.OPEN_ACL_UNSAFE.
var OpenACL = []zk.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}}

// ACLProvider decides the ACL of nodes that are created without one being given. Both methods may return nil: first
// ACLForPath is called, then DefaultACL, then [OpenACL] is taken. They are called on the goroutine that calls ForPath,
// before anything is sent, once for each node that may have to be created: the node itself, its parents if they are to
// be created too, and those of the namespace. They may be called concurrently; a panic is an error of the operation.
// The path has the namespace, not the chroot. In Java: ACLProvider.
type ACLProvider interface {
	DefaultACL() []zk.ACL
	ACLForPath(path string) []zk.ACL
}

// FixedACL is an ACLProvider of one ACL for all nodes.
type FixedACL []zk.ACL

// DefaultACL returns a.
func (a FixedACL) DefaultACL() []zk.ACL { return a }

// ACLForPath returns nil: the default.
func (FixedACL) ACLForPath(string) []zk.ACL { return nil }

// acls are the answers of a provider by the paths of the nodes. The provider is called before an operation begins: what
// follows runs on the goroutine that reads the connection, where the program's code must not. A [FixedACL] has none.
type acls map[string][]zk.ACL

// resolve adds to answers, which may be nil, those of the provider for the paths.
func (e *environment) resolve(answers acls, paths ...string) (acls, error) {
	if _, fixed := e.ACL.(FixedACL); fixed {
		return nil, nil
	}
	if answers == nil {
		answers = make(acls)
	}
	for _, path := range paths {
		acl, err := e.provided(path)
		if err != nil {
			return nil, err
		}
		answers[path] = acl
	}
	return answers, nil
}

// resolveTree resolves path and what is above it, but for the namespace, whose nodes come with its first operation.
func (e *environment) resolveTree(answers acls, path string) (_ acls, err error) {
	for ; len(path) > len(e.namespace.prefix) && path != "/" && err == nil; path = zkpath.Parent(path) {
		answers, err = e.resolve(answers, path)
	}
	return answers, err
}

// provided returns the provider's ACL for path, which includes the namespace as in Java.
func (e *environment) provided(path string) (acl []zk.ACL, err error) {
	err = guarded("ACL", e.ACL, func() {
		if acl = e.ACL.ACLForPath(path); len(acl) == 0 {
			acl = e.ACL.DefaultACL()
		}
	})
	return acl, err
}

// aclOf returns given, or the answer of the provider for path.
func (e *environment) aclOf(path string, given []zk.ACL, answers acls) []zk.ACL {
	acl := given
	if fixed, ok := e.ACL.(FixedACL); ok && len(acl) == 0 {
		acl = []zk.ACL(fixed)
	}
	if len(acl) == 0 {
		acl = answers[path]
	}
	if ns := e.namespace.acls.Load(); len(acl) == 0 && ns != nil {
		acl = (*ns)[path]
	}
	if len(acl) == 0 {
		return OpenACL
	}
	return acl
}

// guarded calls a provider of the program; a panic of it is the error, which names it.
func guarded(what string, provider any, call func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the %s provider %T: %s\n%s", what, provider, errtext.Panic(p), debug.Stack())
		}
	}()
	call()
	return nil
}
