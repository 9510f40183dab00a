package rest_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/rest"
	"github.com/gocurator/curator/framework"
)

func Example() {
	zookeeper, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = zookeeper.Close() }()
	client, err := framework.New(zookeeper.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	services := discovery.New[string](client, "/services")
	if err := services.Start(); err != nil {
		log.Fatal(err)
	}
	handler := http.TimeoutHandler(rest.NewHandler(services), 10*time.Second, "no answer")
	server := httptest.NewServer(handler)
	defer server.Close()

	// In a program without ZooKeeper.
	send := func(method, path, body string) {
		request, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := server.Client().Do(request)
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(method, path, response.Status)
		fmt.Print(string(answer))
	}
	const instance = `{"address":"db7","port":80,"payload":"eu","registrationTimeUTC":1}` // long ago
	send("PUT", "/v1/service/orders/i-7", instance)
	send("GET", "/v1/anyservice/orders", "")

	// Now and then, on any server.
	purged, err := services.Purge(context.Background(), 15*time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("purged:", purged)
	send("GET", "/v1/anyservice/orders", "")
	// Output:
	// PUT /v1/service/orders/i-7 201 Created
	// GET /v1/anyservice/orders 200 OK
	// {"name":"orders","id":"i-7","address":"db7","port":80,"registrationTimeUTC":1,"serviceType":"STATIC","payload":"eu"}
	// purged: 1
	// GET /v1/anyservice/orders 404 Not Found
	// discovery: no instance
}
