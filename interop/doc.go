// Package interop runs Java Curator beside the Go library, so that tests can put both on the same nodes.
//
// A [Peer] is a Java process that obeys commands: [Start] compiles and starts it, [Peer.Call] sends a command
// and waits for its answer, and [Peer.Close] ends it.
//
//	peer, err := interop.Start(ctx, interop.Curator)
//	defer peer.Close()
//	err = peer.Call(ctx, "start", interop.Args{"connect": connect, "sessionTimeoutMs": 10_000}, nil)
//	err = peer.Call(ctx, "mutexNew", interop.Args{"name": "m", "path": "/lock"}, nil)
//	var acquired bool
//	err = peer.Call(ctx, "mutexAcquire", interop.Args{"name": "m", "thread": "t1", "timeoutMs": -1}, &acquired)
//
// # Commands of the program Curator
//
// Every command takes "thread", the name of the Java thread to run on, in order with the others that name it;
// without it the command has a thread of its own. Java's locks belong to threads. Every command that uses a
// client takes "client", its name, when there are several in the process. Bytes are [Bytes].
//
//	version                                             "5.4.0"
//	start    connect namespace sessionTimeoutMs connectionTimeoutMs ensembleTracker retryBaseMs retryMax
//	                                                    session id, once connected
//	close, killSession, sessionId                       null, null, number
//	create   path data mode parents containers protection compressed    the path created
//	getData  path compressed                            [NodeData]
//	setData  path data version compressed               [NodeStat]
//	delete   path version guaranteed children           null
//	exists   path                                       [NodeStat] or null
//	children path                                       names
//	isProtected, normalize  name                        boolean, name
//	mutexNew name path lockData                         null
//	mutexAcquire name timeoutMs                         whether it was acquired; below 0 waits for ever
//	mutexRelease, mutexPath, mutexOwned  name           null, path of the thread's node, boolean
//	mutexParticipants name                              paths in order
//	makeRevocable name                                  null; before the acquire; event "revoked"
//	revoke   path                                       null
//	latchStart name path participant                    null; events "isLeader" and "notLeader"
//	latchAwait name timeoutMs                           whether it leads
//	latchHasLeadership, latchLeader, latchParticipants  boolean, id, ids
//	latchClose name mode                                null; SILENT or NOTIFY_LEADER
//	queueStart name path lockPath consume               null; events "item" if it consumes
//	queuePut name item                                  null
//	queueFlush name timeoutMs                           whether all was put
//	queueClose name                                     null
//	cacheStart name path                                null; events "initialized", "created", "changed", "deleted"
//	cacheDump, cacheClose name                          data by path, null
//
// A mode is named as in Java's CreateMode. Data that is left out is the client's default data. The events are
// "state" with the client and the state, and those of the recipes with the name of the object.
package interop
