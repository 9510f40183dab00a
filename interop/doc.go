// Package interop runs Java Curator beside the Go library, so that tests can put both on the same nodes.
//
// A [Peer] is a Java process that obeys commands: [Start] compiles and starts it, [Peer.Call] sends a command
// and waits for its answer, and [Peer.Close] ends it. A [Scope] is a part of it that nobody else's names and events
// get into.
//
//	peer, err := interop.Start(ctx, interop.Curator)
//	defer peer.Close()
//	err = peer.Call(ctx, "start", interop.Args{"connect": connect, "sessionTimeoutMs": 10_000}, nil)
//	err = peer.Call(ctx, "mutexNew", interop.Args{"name": "m", "path": "/lock"}, nil)
//	var acquired bool
//	err = peer.Call(ctx, "mutexAcquire", interop.Args{"name": "m", "timeoutMs": 5000}, &acquired)
//
// # Commands of the program Curator
//
// Commands that make an object end in New, or in Start if the object works by itself from then on. It takes "client",
// the name of its client, when there are several in the scope, and "name", by which all other commands find the object.
// Those that wait take "timeoutMs"; without it, or below 0, they wait for ever. They hold up nothing else. Bytes are
// [Bytes].
//
// A command has a Java thread of its own. Those that name the same "thread" share it, in order. Java's locks belong to
// threads: the commands marked with * use one of the lock's own unless they name another, which is another owner.
//
// Clients and sessions:
//
//	version                                             of Java Curator, "5.4.0"
//	zookeeperVersion                                    of its ZooKeeper client, "3.8.0" and what a build adds
//	start    connect namespace sessionTimeoutMs connectionTimeoutMs ensembleTracker retryBaseMs retryMax creatorOnly
//	                                                    session id, once connected; events "state"; creatorOnly: the ACL
//	                                                    of new nodes
//	sessionId                                           number
//	killSession                                         null
//	close                                               null; its objects close first
//	end                                                 null; closes all of the scope
//
// Nodes, where a mode is named as in Java's CreateMode, and data that is left out is the client's default data:
//
//	create   path data mode parents containers protection compressed    the path created
//	getData  path compressed                            [NodeData]
//	setData  path data version compressed               [NodeStat]
//	delete   path version guaranteed children           null
//	exists   path                                       [NodeStat] or null
//	children path                                       names
//	isProtected, normalize  name                        boolean, name
//
// Locks. One is a mutex, semaphoreMutex, multiLock, readLock or writeLock, for which lock stands here:
//
//	mutexNew          name path lockData                null
//	semaphoreMutexNew name path                         null
//	multiLockNew      name paths                        null
//	readWriteLockNew  name path lockData                null; a readLock and a writeLock of the name, with one thread
//	lockAcquire* name timeoutMs                         whether it was acquired
//	lockRelease* name                                   null
//	lockHeld     name                                   whether a thread of the process has it
//
// Of a mutex, readLock and writeLock also:
//
//	lockOwned*       name                               whether the thread has it
//	lockPath*        name                               path of the thread's node
//	lockParticipants name                               paths in order
//	lockMakeRevocable name                              null; before the acquire; event "revoked"
//	revoke           path                               null
//
// Semaphores and shared counts:
//
//	semaphoreNew     name path data leases              null; leases: how many, or with
//	                               count                the name of the count
//	semaphoreAcquire name leases timeoutMs              names of the nodes, or null; 1 if leases is left out
//	semaphoreRelease name leases                        null; the names of the nodes, all if left out
//	semaphoreParticipants name                          names of the nodes
//	countStart       name path seed                     null; events "counted"
//	countGet         name                               [Count]
//	countSet         name value                         null
//	countTrySet      name value                         whether it was still what countGet gave last
//	countClose       name                               null
//
// Shared values:
//
//	sharedStart      name path seed                     null; events "valueChanged"
//	sharedGet        name                               [Shared]
//	sharedSet        name data                          null
//	sharedTrySet     name data                          whether it was still what sharedGet gave last
//	sharedClose      name                               null
//
// Barriers:
//
//	barrierNew name path                                null
//	barrierSet, barrierRemove  name                     null
//	barrierWait        name timeoutMs                   whether it opened
//	doubleBarrierNew   name path members                null
//	doubleBarrierEnter name timeoutMs                   whether all entered
//	doubleBarrierLeave name timeoutMs                   whether all left
//
// Counters:
//
//	atomicLongNew, atomicIntegerNew  name path lockPath null; lockPath: promoted, atomicLong alone
//	atomicLongGet, atomicIntegerGet  name               succeeded, pre and post
//	atomicLongAdd, atomicIntegerAdd  name value         the same
//	atomicLongTrySet    name value                      the same
//	atomicLongCompareAndSet  name expected value        the same
//	atomicLongInitialize  name value                    boolean
//	atomicLongForceSet  name value                      null
//	atomicLongCount     name times                      how many increments succeeded
//	atomicLongNext      name factor                     the next number of a new CachedAtomicLong, as Get
//	atomicValueNew      name path                       null
//	atomicValueGet      name                            bytes
//	atomicValueTrySet   name data                       boolean
//	atomicValueCompareAndSet  name expected data        boolean
//
// Leaders:
//
//	latchStart name path participant                    null; events "isLeader" and "notLeader"
//	latchAwait name timeoutMs                           whether it leads
//	latchHasLeadership, latchLeader, latchPath  name    boolean, id, path
//	latchParticipants name                              list of [Participant], in order
//	latchClose name mode                                null; SILENT or NOTIFY_LEADER
//	selectorStart name path participant autoRequeue     null; events "taken" and "released"
//	selectorRelinquish, selectorInterrupt  name         null; one or the other ends its leadership
//	selectorRequeue name                                boolean
//	selectorHasLeadership, selectorLeader  name         boolean, id
//	selectorParticipants name                           list of [Participant], in order
//	selectorClose name                                  null
//
// Queues. One is a queue, priorityQueue, delayQueue or idQueue; the simpleQueue goes by itself:
//
//	queueStart    name path consume lockPath maxItems errorMode failures minItemsBeforeRefresh
//	                                                    null; events "item" if it consumes, and before them as many
//	                                                    "refused" as failures; minItemsBeforeRefresh: priorityQueue
//	queuePut      name item                             null; waits if there are maxItems
//	queuePutMulti name items                            null; not the idQueue
//	                        priority                    priorityQueue: also
//	                        epochMs                     delayQueue: also
//	                        itemId                      idQueue: also
//	idQueueRemove name itemId                           how many
//	queueFlush    name timeoutMs                        whether all was put
//	queueClose    name                                  null
//	simpleQueueNew   name path                          null
//	simpleQueueOffer name data                          boolean
//	simpleQueueTake  name timeoutMs                     bytes or null
//	simpleQueuePoll, simpleQueuePeek  name              bytes or null
//	simpleQueueElement, simpleQueueRemove  name         bytes, or NoSuchElementException
//
// Caches:
//
//	cacheStart name path options                        null; events "initialized", "created", "changed", "deleted";
//	                                                    options as in Java's CuratorCache.Options
//	cacheDump  name                                     [Bytes] by path
//	cacheClose name                                     null
//	nodeCache, childrenCache, treeCache                 Start, Dump and Close as those of cache, without options;
//	                                                    events by Java's names of their types
//
// Discovery, where an instance is an object with the members name, id, address, port, registrationTimeUTC and payload,
// which is a bean of Java:
//
//	discoveryStart    name path services                null; follows the services with caches and providers
//	discoveryRegister name instance                     null
//	discoveryView     name                              instances by service and by who has them: cache, provider, query
//	discoveryClose    name                              null
//
// The events are "state" with the client and the state, and those of the recipes with the name of the object, see
// [Event].
package interop
