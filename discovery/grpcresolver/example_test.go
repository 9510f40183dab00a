package grpcresolver_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/grpcresolver"
	"github.com/gocurator/curator/framework"
)

// A server registers itself, a client finds it, and the server drains.
func Example() {
	ctx := context.Background()
	zookeeper, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	defer zookeeper.Close() //nolint:errcheck // the example has ended
	client, err := framework.New(zookeeper.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // the example has ended
	services := discovery.New[string](client, "/services")
	if err := services.Start(); err != nil {
		log.Fatal(err)
	}
	defer services.Close(ctx) //nolint:errcheck // the example has ended

	// The server: its context ends with SIGTERM in a program.
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		server := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(server, health.NewServer())
		instance := discovery.NewServiceInstance[string]("orders", "127.0.0.1", 0) // the port is that of lis
		ended <- grpcresolver.Serve(serving, server, lis, services, instance, grpcresolver.WithPause(10*time.Millisecond))
	}()

	// The client. It may begin before the server.
	conn, err := grpc.NewClient("zk:///orders",
		grpc.WithResolvers(grpcresolver.New(services)),
		grpc.WithDefaultServiceConfig(`{
			"loadBalancingConfig": [{"round_robin": {}}],
			"methodConfig": [{"name": [{}], "waitForReady": true, "retryPolicy": {
				"maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.1s", "backoffMultiplier": 2,
				"retryableStatusCodes": ["UNAVAILABLE"]
			}}]
		}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the example has ended
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("orders is", answer.GetStatus())

	stop()
	fmt.Println("stopped:", <-ended)
	// Output:
	// orders is SERVING
	// stopped: <nil>
}
