package discovery_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/gocurator/curator/discovery"
)

// The node of an instance, without a client: Java reads it with new JsonInstanceSerializer<>(Meta.class).
func ExampleNewInstanceSerializer() {
	type Meta struct {
		Zone string `json:"zone"`
	}
	s, err := discovery.NewInstanceSerializer[Meta](discovery.WithPayloadClass("com.acme.Meta"))
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := s.Encode(discovery.ServiceInstance[Meta]{
		Name: "orders", ID: "1", Address: "10.0.0.1", Port: 8080, Payload: Meta{Zone: "eu"},
		RegistrationTime: time.UnixMilli(1_700_000_000_000),
	})
	fmt.Println(strings.ReplaceAll(string(data), `,"`, ",\n \""), err)
	i, err := s.Decode(data)
	fmt.Println(i.Name, i.Payload.Zone, err)
	// Output:
	// {"name":"orders",
	//  "id":"1",
	//  "address":"10.0.0.1",
	//  "port":8080,
	//  "sslPort":null,
	//  "payload":{"@class":"com.acme.Meta",
	//  "zone":"eu"},
	//  "registrationTimeUTC":1700000000000,
	//  "serviceType":"DYNAMIC",
	//  "uriSpec":null} <nil>
	// orders eu <nil>
}

func ExampleServiceInstance_URI() {
	i := discovery.ServiceInstance[struct{}]{
		Name: "orders", Address: "10.0.0.1", Port: 8080,
		URISpec: discovery.MustParseURISpec("{scheme}://{address}:{port}/{name}/{tenant}"),
	}
	fmt.Println(i.URI(map[string]string{"tenant": "acme"}))
	// Output: http://10.0.0.1:8080/orders/acme
}
