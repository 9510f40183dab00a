// Package grpcresolver lets gRPC clients find the servers of a service with package discovery, and gRPC servers
// register themselves. It is a module of its own: the library does not need gRPC. Not in Java.
//
// Before the first release, go get takes it only together with the library:
//
//	go get github.com/gocurator/curator github.com/gocurator/curator/discovery/grpcresolver
//
// A server:
//
//	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
//	defer stop()
//	lis, err := net.Listen("tcp", "10.0.0.7:0")
//	if err != nil {
//		return err
//	}
//	instance := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 0) // the port is that of lis
//	return grpcresolver.Serve(ctx, server, lis, services, instance)
//
// And a client:
//
//	conn, err := grpc.NewClient("zk:///orders",
//		grpc.WithResolvers(grpcresolver.New(services)),
//		grpc.WithDefaultServiceConfig(config),
//		grpc.WithTransportCredentials(credentials))
//
// services is a discovery.ServiceDiscovery that is started. It outlives the connections and the servers.
//
// # The service config
//
// gRPC sends everything to one server unless the config of the client says otherwise, and it retries a call that a
// dying server had begun only with a retry policy. With this config no call fails while there are servers, if the
// methods may be called twice:
//
//	{
//	  "loadBalancingConfig": [{"round_robin": {}}],
//	  "methodConfig": [{
//	    "name": [{}],
//	    "waitForReady": true,
//	    "retryPolicy": {
//	      "maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.1s", "backoffMultiplier": 2,
//	      "retryableStatusCodes": ["UNAVAILABLE"]
//	    }
//	  }]
//	}
//
// gRPC does not retry a call whose answer has begun to arrive.
//
// # What a connection sees
//
//   - Before the instances are known, calls wait. After [WithLoadTimeout] they fail with UNAVAILABLE and the reason,
//     until ZooKeeper answers. Those that wait for ready go on waiting.
//   - Each change of an instance is passed on. A new payload or weight closes no connection; a new address does.
//   - In an outage of ZooKeeper, and after the discovery is closed, the last addresses stay.
//   - A service without instances has no addresses: calls fail with UNAVAILABLE. Those that wait for ready wait for
//     the first instance.
//   - Instances that are disabled are left out, and so are those without an address or a port. Of two instances with
//     the same address and port the newer one counts: a server that came back after a crash has two until the old
//     session has ended.
//   - The order of the addresses is random for each connection, and stays: clients that take the first one do not all
//     take the same.
//
// The authority of the calls is the name of the service, and TLS checks the certificates of the servers against it.
// grpc.WithAuthority sets another one.
//
// gRPC goes through the proxy of HTTPS_PROXY, if there is one, and then loses the attributes of the instances. Use
// grpc.WithNoProxy.
package grpcresolver
