package docs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
)

// javaInstances are what JsonInstanceSerializer of Java Curator 5.4.0 writes.
var javaInstances = []string{
	`{"name":"orders","id":"i-7","address":"10.0.0.7","port":8080,"sslPort":null,"payload":"eu",` +
		`"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null}`,
	`{"name":"orders","id":"i-7","address":"10.0.0.7","port":null,"sslPort":null,` +
		`"payload":{"@class":"java.util.LinkedHashMap","zone":"eu"},` +
		`"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":{"parts":[` +
		`{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},` +
		`{"value":":","variable":false},{"value":"port","variable":true}]}}`,
}

func TestServiceInstanceHasBytesOfJava(t *testing.T) {
	t.Parallel()
	for _, want := range javaInstances {
		var instance serviceInstance
		if err := json.Unmarshal([]byte(want), &instance); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(instance)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nis not\n%s", got, err, want)
		}
	}
	if !strings.Contains(readPage(t, "porting/not-here-yet.md"), javaInstances[0]) {
		t.Error("the page has other bytes")
	}
	got, err := json.Marshal(serviceInstance{Name: "orders"})
	const want = `{"name":"orders","id":"","address":null,"port":null,"sslPort":null,"payload":null,` +
		`"registrationTimeUTC":0,"serviceType":"","uriSpec":null}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nis not\n%s", got, err, want)
	}
}

func TestRegisteredInstanceIsFound(t *testing.T) {
	t.Parallel()
	server, client := connect(t)
	var want serviceInstance
	if err := json.Unmarshal([]byte(javaInstances[0]), &want); err != nil {
		t.Fatal(err)
	}
	node, err := registered(client, want)
	if err != nil {
		t.Fatal(err)
	}
	ctx := testenv.Context(t)
	if err := node.WaitForInitialCreate(ctx); err != nil {
		t.Fatal(err)
	}
	if got, _ := server.Node("/services/orders/i-7"); string(got.Data) != javaInstances[0] {
		t.Errorf("the data of the node is %s", got.Data)
	}
	c, err := instancesOf(ctx, client, "orders")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := decoded(c); !cmp.Equal(got, []serviceInstance{want}) {
		t.Errorf("instances: %+v", got)
	}
	if err := node.Close(ctx); err != nil {
		t.Error(err)
	}
}
