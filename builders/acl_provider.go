package builders

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/zkpath"
)

// OpenACL gives everybody all permissions. It is the default of a client. In Java: ZooDefs.Ids.OPEN_ACL_UNSAFE.
var OpenACL = []zk.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}}

// ACLProvider provides the ACLs of nodes that are created without one. A client calls ACLForPath, then DefaultACL if
// the result is nil, and uses [OpenACL] if that is nil too. It calls them on the goroutine that calls ForPath, before
// it sends anything, once for each node that it may create: the node itself, its parents if they are to be created too,
// and the nodes of the namespace. The calls may be concurrent. A panic is an error of the operation. The path has the
// namespace, not the chroot. In Java: ACLProvider.
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

// acls are the results of a provider by the paths of the nodes. The provider is called before an operation begins:
// later steps run on the goroutine that reads the connection, which must not run the program's code. A [FixedACL] has
// none.
type acls map[string][]zk.ACL

// resolve adds the ACLs of the paths to answers, which may be nil.
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

// resolveTree resolves path and the nodes above it, without the namespace: its nodes are created before its first
// operation.
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
	return clone(acl), err
}

// aclOf returns given, or the ACL of the provider for path.
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

// guarded calls a provider of the program. It returns a panic as an error with the name of the provider.
func guarded(what string, provider any, call func()) error {
	return usercode.Call(fmt.Sprintf("the %s provider %T", what, provider), call)
}
