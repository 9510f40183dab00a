// Package shared keeps values in nodes that all processes share.
//
//   - [SharedValue] is the bytes of a node, and follows it: every process has the newest value at hand.
//   - [SharedCount] is a number in such a node. It can be the number of leases of a semaphore.
//   - [Value] is a value of a type of the program. It is read when it is wanted, changed by a function, and watched.
//
// Go and Java processes share the nodes of the first two. docs/values.md has what each promises.
//
//	limit := shared.NewSharedCount(client, "/limits/jobs", 10)
//	if err := limit.Start(ctx); err != nil {
//		return err
//	}
//	defer limit.Close()
//	limit.AddListener(func(ctx context.Context, n shared.VersionedValue[int]) { resize(n.Value) })
//
// # Coming from Java Curator
//
//	Java                                             here
//	new SharedValue(client, path, seed)              [NewSharedValue](client, path, seed)
//	new SharedCount(client, path, seed)              [NewSharedCount](client, path, seed)
//	start(), close()                                 Start(ctx), Close()
//	getValue(), getCount()                           Value(), Count()
//	getVersionedValue()                              VersionedValue()
//	setValue(value), setCount(n)                     SetValue(ctx, value), SetCount(ctx, n)
//	trySetValue(previous, value), trySetCount        TrySetValue(ctx, previous, value), TrySetCount
//	getListenable().addListener, addListener         AddListener, AddConnectionStateListener
//	IllegalTrySetVersionException                    [ErrIllegalVersion]
//	ModeledFramework                                 [Value]
package shared
