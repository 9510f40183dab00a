// Package zkpath makes, checks and takes apart the paths and names of ZooKeeper nodes.
//
// All functions work on text alone and talk to no server. Those without an error among their results expect a
// path that [Validate] accepts and give some text for any other:
//
//	path := zkpath.Join("/locks", "orders", "lock-") // "/locks/orders/lock-"
//	parent, node := zkpath.PathAndNode(path)         // "/locks/orders", "lock-"
//
// # Namespaces
//
// A namespace is a path without its first slash, "app" or "team/app", below which a client lives.
// [FixForNamespace] goes from the path that a program uses to the one on the server, [StripNamespace] back.
//
// # Protection
//
// A client that loses its connection during a create cannot know the name that a sequential node got. So it
// puts an identifier of its own into the name beforehand and looks for it afterwards: "lock-" becomes
// "_c_53345f98-9423-4e0c-a7b5-9f819e3ec2e1-lock-". [Protect] adds such a prefix, [Normalize] takes it off
// again. The form is Java Curator's, so either side finds the nodes of the other.
//
// # Concurrency
//
// Everything here is safe for concurrent use.
//
// # Errors
//
// Errors match [zk.ErrInvalidPath] and name the path and its fault.
//
// # Coming from Java Curator
//
//	Java                                             here
//	PathUtils.validatePath(path, isSequential)       [Validate]
//	ZKPaths.makePath(parent, children...)            [Join]
//	ZKPaths.split(path)                              [Split]
//	ZKPaths.getNodeFromPath(path)                    [Node]
//	ZKPaths.getPathAndNode(path)                     [PathAndNode], [Parent]
//	ZKPaths.extractSequentialSuffix(path)            [SequentialSuffix]
//	ZKPaths.fixForNamespace(ns, path, isSequential)  [FixForNamespace]
//	CuratorFramework's way back from a namespace     [StripNamespace], only where a name ends
//	ZPath.parseWithIds(path), resolved(values)       [Template], [Template.Expand]
//	ProtectedUtils.toProtectedZNode(name, id)        [Protect](id, name)
//	ProtectedUtils.toProtectedZNodePath(path, id)    [ProtectPath](id, path)
//	ProtectedUtils.getProtectedPrefix(id)            [ProtectedPrefix]
//	ProtectedUtils.isProtectedZNode(name)            [IsProtected]
//	ProtectedUtils.extractProtectedId(name)          [ProtectedID]
//	ProtectedUtils.normalize(name)                   [Normalize]
//	ProtectedUtils.normalizePath(path)               [NormalizePath]
package zkpath
