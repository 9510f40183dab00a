package discovery_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/gocurator/curator/discovery"
)

func TestNewServiceInstance(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	a := discovery.NewServiceInstance[struct{}]("orders", "10.0.0.1", 8080)
	b := discovery.NewServiceInstance[struct{}]("orders", "10.0.0.1", 8080)
	if a.Name != "orders" || a.Address != "10.0.0.1" || a.Port != 8080 || a.Type != discovery.Dynamic || a.Disabled {
		t.Errorf("%+v", a)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if a.ID == b.ID || !uuid.MatchString(a.ID) || !uuid.MatchString(b.ID) {
		t.Errorf("IDs %s and %s", a.ID, b.ID)
	}
	if a.RegistrationTime.Before(before) || time.Now().Before(a.RegistrationTime) {
		t.Errorf("registered at %v, not after %v", a.RegistrationTime, before)
	}
}

func TestServiceInstanceURI(t *testing.T) {
	all := "{scheme}|{name}|{id}|{address}|{port}|{ssl-port}|{registration-time-utc}|{service-type}|{none}|{own}"
	full := discovery.ServiceInstance[string]{
		Name: "n", ID: "i", Address: "1.2.3.4", Port: 80, SSLPort: 443, Type: discovery.DynamicSequential,
		RegistrationTime: time.UnixMilli(5),
	}
	for _, tt := range []struct {
		instance  discovery.ServiceInstance[string]
		spec      string
		variables map[string]string
		want      string
	}{
		{full, "{scheme}://{address}:{port}/x", nil, "https://1.2.3.4:80/x"},
		{full, all, map[string]string{"own": "o"}, "https|n|i|1.2.3.4|80|443|5|dynamic_sequential||o"},
		{full, all, map[string]string{"scheme": "ftp", "port": ""}, "ftp|n|i|1.2.3.4||443|5|dynamic_sequential||"},
		{discovery.ServiceInstance[string]{}, all, nil, "http||||||0|dynamic||"},
		{full, "", nil, ""},
	} {
		tt.instance.URISpec = discovery.MustParseURISpec(tt.spec)
		if got := tt.instance.URI(tt.variables); got != tt.want {
			t.Errorf("%q with %v is %q, want %q", tt.spec, tt.variables, got, tt.want)
		}
	}
}

func TestServiceInstanceEqual(t *testing.T) {
	type meta struct{ Zones []string }
	now := time.UnixMilli(1_700_000_000_000)
	a := discovery.ServiceInstance[*meta]{Name: "n", ID: "i", Payload: &meta{[]string{"eu"}}, RegistrationTime: now}
	same := a
	same.Payload, same.RegistrationTime = &meta{[]string{"eu"}}, now.Add(time.Microsecond).UTC()
	if !a.Equal(same) {
		t.Errorf("%+v is not %+v", a, same)
	}
	for name, change := range map[string]func(*discovery.ServiceInstance[*meta]){
		"name":    func(i *discovery.ServiceInstance[*meta]) { i.Name = "m" },
		"id":      func(i *discovery.ServiceInstance[*meta]) { i.ID = "j" },
		"address": func(i *discovery.ServiceInstance[*meta]) { i.Address = "h" },
		"port":    func(i *discovery.ServiceInstance[*meta]) { i.Port = 80 },
		"SSL":     func(i *discovery.ServiceInstance[*meta]) { i.SSLPort = 80 },
		"payload": func(i *discovery.ServiceInstance[*meta]) { i.Payload = &meta{} },
		"time":    func(i *discovery.ServiceInstance[*meta]) { i.RegistrationTime = now.Add(time.Millisecond) },
		"type":    func(i *discovery.ServiceInstance[*meta]) { i.Type = discovery.Static },
		"URI":     func(i *discovery.ServiceInstance[*meta]) { i.URISpec = discovery.MustParseURISpec("/") },
		"enabled": func(i *discovery.ServiceInstance[*meta]) { i.Disabled = true },
	} {
		other := a
		change(&other)
		if a.Equal(other) {
			t.Errorf("equal with another %s", name)
		}
	}
}

func TestServiceTypeHasJavasNames(t *testing.T) {
	for _, tt := range []struct {
		typ     discovery.ServiceType
		name    string
		dynamic bool
	}{
		{discovery.Dynamic, "DYNAMIC", true},
		{discovery.Static, "STATIC", false},
		{discovery.Permanent, "PERMANENT", false},
		{discovery.DynamicSequential, "DYNAMIC_SEQUENTIAL", true},
		{-1, "ServiceType(-1)", false},
		{4, "ServiceType(4)", false},
	} {
		if tt.typ.String() != tt.name || tt.typ.IsDynamic() != tt.dynamic {
			t.Errorf("%d is %v, dynamic: %v", int(tt.typ), tt.typ, tt.typ.IsDynamic())
		}
	}
}
