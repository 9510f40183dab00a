// Package nodes keeps nodes in ZooKeeper for as long as a process wants them.
//
//   - [PersistentNode] is a node that is there again after every outage, in one session after the other.
//   - [PersistentTTLNode] keeps a node that outlives the process by a limited time.
//   - [GroupMember] is a node among those of the others, and shows who they are.
//
// All nodes of a client share one goroutine and few requests. Go and Java processes use the same nodes. docs/nodes.md
// has what each promises.
//
//	member := nodes.NewGroupMember(client, "/workers", "a", []byte("10.0.0.7"))
//	if err := member.Start(); err != nil {
//		return err
//	}
//	defer member.Close(context.WithoutCancel(ctx))
//	if err := member.Ready(ctx); err != nil { // it is in, and knows the others
//		return err
//	}
//	for id, payload := range member.CurrentMembers() {
//		use(id, payload)
//	}
//
// # Coming from Java Curator
//
//	Java                                                     here
//	new PersistentNode(client, mode, false, path, data)      [NewPersistentNode](client, path, mode, data)
//	new PersistentNode(client, mode, true, path, data)       the same, with [WithProtection]
//	new PersistentTtlNode(client, path, ttlMs, data)         [NewPersistentTTLNode](client, path, ttl, data)
//	new GroupMember(client, membershipPath, id, payload)     [NewGroupMember](client, membershipPath, id, payload)
//	start(), close()                                         Start(), Close(ctx), which waits for the deletion
//	waitForInitialCreate(time, unit)                         WaitForInitialCreate(ctx): an error in place of false
//	setData(data), setThisData(payload)                      SetData(ctx, data), SetThisData: they wait for the write
//	getListenable().addListener                              AddListener, with [Created], [Lost] and [Refused]
//	getCurrentMembers()                                      CurrentMembers(), and Changes(ctx) for what follows
package nodes
