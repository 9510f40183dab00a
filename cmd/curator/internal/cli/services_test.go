package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// TestServicesPrintsWhatDiscoveryReads has nodes of other writers, and compares the output with what a query returns.
func TestServicesPrintsWhatDiscoveryReads(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	for id, data := range map[string]string{
		"whole":           `{"name":"shop","id":"whole","address":"h","port":1,"registrationTimeUTC":1,"serviceType":1}`,
		"unregistered":    `{"name":"shop","id":"unregistered","address":"h","port":1}`,
		"unnamed":         `{"address":"h","port":1}`,
		"null":            `{"name":null,"id":"null","address":"h","registrationTimeUTC":null}`,
		"7":               `{"name":"shop","id":7,"port":"80","registrationTimeUTC":"12"}`,
		"space":           " \n{\"name\":\"shop\",\"id\":\"space\"}",
		"copy":            `{"name":"shop","id":"whole","address":"h"}`,
		"seq0000000003":   `{"name":"shop","id":"seq","serviceType":"DYNAMIC_SEQUENTIAL"}`,
		"late":            `{"name":"shop","id":"late","registrationTimeUTC":9223372036854775807}`,
		"payload":         `{"name":"shop","id":"payload","payload":["java.lang.Double","NaN"]}`,
		"not an instance": `host:80`,
		"broken":          `{"name":"shop",`,
	} {
		_, err := client.Create().CreatingParentsIfNeeded().ForPath(t.Context(), "/services/shop/"+id, []byte(data))
		testclient.Must(t, err)
	}
	d := discovery.New[json.RawMessage](client, "/services")
	testclient.Must(t, d.Start())
	defer func() { testclient.Must(t, d.Close(t.Context())) }()
	instances, err := d.Instances(testenv.Context(t), "shop")
	testclient.Must(t, err)
	got := invoke(t.Context(), strings.Fields("services /services -o json"), environ...)
	if n := strings.Count(got.stdout, "\n"); got.code != CodeOK || n != len(instances) || n != 10 {
		t.Errorf("%d lines, %d instances: %+v", n, len(instances), got)
	}
	got = invoke(t.Context(), strings.Fields("services /services"), environ...)
	if n := strings.Count(got.stdout, "\n"); got.code != CodeOK || n != len(instances)+1 {
		t.Errorf("table: %+v", got)
	}
	if got := invoke(t.Context(), strings.Fields("services /services -o yaml"), environ...); got.code != CodeOK {
		t.Errorf("YAML: %+v", got)
	}
	testclient.Must(t, client.Delete().DeletingChildrenIfNeeded().ForPath(t.Context(), "/services/shop"))
	got = invoke(t.Context(), strings.Fields("services /services -o json"), environ...)
	if want := (result{stderr: "curator: no instances at or below /services\n"}); got != want {
		t.Errorf("without instances: %+v", got)
	}
}

// TestServicesShowsWhetherAnInstanceIsUsed has an instance that no provider chooses.
func TestServicesShowsWhetherAnInstanceIsUsed(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	d := discovery.New[map[string]string](client, "/services")
	testclient.Must(t, d.Start())
	defer func() { testclient.Must(t, d.Close(t.Context())) }()
	off := discovery.NewServiceInstance[map[string]string]("shop", "10.0.0.1", 8080)
	off.ID, off.SSLPort, off.Disabled, off.Type = "off", 8443, true, discovery.Static
	off.Payload = map[string]string{"zone": "b"}
	on := discovery.NewServiceInstance[map[string]string]("shop", "10.0.0.2", 0)
	on.ID, on.SSLPort = "on", 8443
	for _, in := range []discovery.ServiceInstance[map[string]string]{off, on} {
		testclient.Must(t, d.Register(testenv.Context(t), in))
	}
	got := invoke(t.Context(), strings.Fields("services /services"), environ...)
	lines := strings.Split(got.stdout, "\n")
	if len(lines) != 4 {
		t.Fatalf("services: %+v", got)
	}
	var rows []string
	for _, line := range lines[:3] {
		f := strings.Fields(line)
		rows = append(rows, strings.Join(slices.Concat(f[:6], f[8:]), " "))
	}
	want := []string{
		"SERVICE ID ADDRESS SSL ENABLED TYPE PAYLOAD",
		`/services/shop off 10.0.0.1:8080 8443 false STATIC {"@class":"java.util.LinkedHashMap","zone":"b"}`,
		"/services/shop on 10.0.0.2:8443 8443 true DYNAMIC -",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	got = invoke(t.Context(), strings.Fields("services /services -o json"), environ...)
	var s service
	testclient.Must(t, json.Unmarshal([]byte(strings.Split(got.stdout, "\n")[0]), &s))
	if !strings.Contains(got.stdout, `"enabled":false,"type":"STATIC","payload":{"@class"`) || s.Name != "shop" ||
		s.Port != 8080 || s.SSLPort != 8443 || s.Address != "10.0.0.1:8080" || s.Registered == nil || s.Note != "" {
		t.Errorf("services -o json: %s", got.stdout)
	}
	got = invoke(t.Context(), strings.Fields("holders /services"), environ...)
	if strings.Count(got.stdout, "(disabled)") != 1 {
		t.Errorf("holders: %s", got.stdout)
	}
}
