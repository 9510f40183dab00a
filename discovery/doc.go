// Package discovery registers instances of services in ZooKeeper and finds them. It shares its nodes and bytes with
// Java's curator-x-discovery. docs/discovery.md has what it promises.
//
//   - [ServiceDiscovery] registers instances, keeps them there, and queries.
//   - [ServiceCache] keeps the instances of a service in memory, and shows each change.
//   - [ServiceProvider] chooses one of them for each call.
//   - [ServiceInstance] and [NewInstanceSerializer] are the data, for programs that read and write nodes themselves.
//
// A process that offers a service:
//
//	services := discovery.New[string](client, "/services")
//	if err := services.Start(); err != nil {
//		return err
//	}
//	defer services.Close(context.WithoutCancel(ctx))
//	instance := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 8080)
//	if err := services.Register(ctx, instance); err != nil {
//		return err
//	}
//
// And one that uses it:
//
//	orders := services.Provider("orders")
//	if err := orders.Start(ctx); err != nil {
//		return err
//	}
//	pick, err := orders.Pick(ctx)
//	if err != nil {
//		return err
//	}
//	err = call(pick.Instance)
//	pick.Done(err) // an error counts against the instance
//
// # Coming from Java Curator
//
//	Java                                                  here
//	ServiceDiscoveryBuilder…client(c).basePath(p)         [New][T](client, basePath)
//	start(), thisInstance(instance)                       Start(), Register(ctx, instance)
//	registerService, updateService, unregisterService     Register, Update, Unregister: each waits for the servers
//	queryForNames(), queryForInstances(name)              Names(ctx), Instances(ctx, name)
//	queryForInstance(name, id), null if there is none     Instance(ctx, name, id): [ErrNoInstance]
//	serviceCacheBuilder().name(n).build()                 Cache(name)
//	serviceProviderBuilder().serviceName(n).build()       Provider(name)
//	provider.getInstance(), null if there is none         Instance(): [ErrNoInstance]; or Pick(ctx), which waits
//	RoundRobinStrategy, RandomStrategy, StickyStrategy    [RoundRobin], [Random], [Sticky]
//	setEnabled(false)                                     Disabled: true
package discovery
