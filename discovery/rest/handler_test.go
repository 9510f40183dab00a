package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/rest"
)

// The bodies are those of Java's server.
func TestHandlerServesLifeOfInstances(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		const (
			a = `{"name":"orders","id":"a","address":"10.0.0.7","port":8080,"sslPort":8443,` +
				`"registrationTimeUTC":1700000000000,"serviceType":"PERMANENT","payload":"<eu> & \"us\""}`
			b = `{"name":"orders","id":"b","address":null,"registrationTimeUTC":1700000000001,` +
				`"serviceType":"STATIC","payload":""}`
		)
		s.want("GET", "/v1/service", "", 200, `[]`) // without a base path
		s.want("GET", "/v1/service/orders", "", 200, `[]`)
		s.want("PUT", "/v1/service/orders/b", b, 201, "")
		s.want("PUT", "/v1/service/orders/a", a, 201, "")
		s.want("GET", "/v1/service/orders/a", "", 200, a)
		s.want("GET", "/v1/service/orders/b/", "", 200, b)
		s.want("GET", "/v1/service/orders", "", 200, "["+a+","+b+"]")
		s.want("PUT", "/v1/service/shops%2Feu/c", minimal, 201, "") // a name that is a path
		s.want("GET", "/v1/service/", "", 200, `[{"name":"orders"},{"name":"shops"}]`)
		s.want("DELETE", "/v1/service/orders/a", "", 200, "")
		s.want("DELETE", "/v1/service/orders/a", "", 200, "") // once more
		s.want("GET", "/v1/anyservice/orders", "", 200, b)
		if got := s.instance("shops/eu", "c"); got.Port != 8080 {
			t.Errorf("got %+v", got)
		}
		s.wantRefused("GET", "/v1/service/orders/a", "", 404, "no instance")
		s.wantRefused("GET", "/v1/anyservice/nothing", "", 404, "no instance")
	})
}

func TestGetOfOldFormHasWarning(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		s.want("PUT", "/v1/service/orders/a", minimal, 201, "")
		w, now := s.send(s.handler, "GET", "/orders/a", ""), s.send(s.handler, "GET", "/v1/service/orders/a", "")
		if w.Code != 200 || w.Body.String() != now.Body.String() {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if !strings.HasPrefix(w.Header().Get("Warning"), "299 ") || now.Header().Get("Warning") != "" {
			t.Errorf("headers %v and %v", w.Header(), now.Header())
		}
	})
}

func TestPutReadsBody(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		at := time.UnixMilli(1700000000000).UTC()
		for _, test := range []struct {
			body string
			want discovery.ServiceInstance[string] // zero: registered now
		}{
			{`{}`, discovery.ServiceInstance[string]{}},
			{minimal, discovery.ServiceInstance[string]{Address: "10.0.0.7", Port: 8080}},
			{
				`{"name":"orders","id":"a","address":null,"port":null,"sslPort":null,"registrationTimeUTC":null,` +
					`"serviceType":null,"payload":null,"uriSpec":null,"enabled":true,"other":[1]}`,
				discovery.ServiceInstance[string]{},
			},
			{
				` { "sslPort": 65535, "registrationTimeUTC": 1700000000000, "serviceType": "PERMANENT", "payload": "eu" } `,
				discovery.ServiceInstance[string]{
					SSLPort: 65535, RegistrationTime: at, Type: discovery.Permanent, Payload: "eu",
				},
			},
			{`{"address":"null"}`, discovery.ServiceInstance[string]{Address: "null"}}, // somebody's host
		} {
			before := time.Now().Truncate(time.Millisecond)
			s.want("PUT", "/v1/service/orders/a", test.body, 201, "")
			got := s.instance("orders", "a")
			test.want.Name, test.want.ID = "orders", "a"
			if test.want.Type == discovery.Dynamic {
				test.want.Type = discovery.Static
			}
			if test.want.RegistrationTime.IsZero() {
				if got.RegistrationTime.Before(before) || got.RegistrationTime.After(time.Now()) {
					t.Errorf("%s: registered at %v", test.body, got.RegistrationTime)
				}
				got.RegistrationTime = time.Time{}
			}
			if !got.Equal(test.want) {
				t.Errorf("%s: got %+v, want %+v", test.body, got, test.want)
			}
		}
	})
}

// Java's programs read what a PUT has written.
func TestPutWritesNodeOfJava(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		s.want("PUT", "/v1/service/orders/a", `{"registrationTimeUTC":1,"payload":"eu"}`, 201, "")
		data, err := s.reader.GetData().ForPath(s.ctx, base+"/orders/a")
		s.must(err)
		const want = `{"name":"orders","id":"a","address":null,"port":null,"sslPort":null,"payload":"eu",` +
			`"registrationTimeUTC":1,"serviceType":"STATIC","uriSpec":null}`
		if string(data) != want {
			t.Errorf("the node is %s", data)
		}
	})
}

func TestBadRequestsAreRefused(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		const path = "/v1/service/orders/a"
		for _, test := range []struct {
			method, path, body string
			code               int
			part               string
		}{
			{"PUT", path, ``, 400, "no instance"},
			{"PUT", path, `null`, 400, "no instance"},
			{"PUT", path, `[]`, 400, "array"},
			{"PUT", path, `{"port":1`, 400, "no instance"},
			{"PUT", path, minimal + minimal, 400, "behind"},
			{"PUT", path, minimal + "}", 400, "no instance"},
			{"PUT", path, "\xff", 400, "no instance"},
			{"PUT", path, strings.Repeat("[", 100_000), 400, "no instance"},
			{"PUT", path, `{"port":"80"}`, 400, "port: a JSON string"},
			{"PUT", path, `{"port":80.5}`, 400, "port: a JSON number 80.5"},
			{"PUT", path, `{"port":-1}`, 400, "no port"},
			{"PUT", path, `{"sslPort":65536}`, 400, "no port"},
			{"PUT", path, `{"port":99999999999999999999}`, 400, "port"},
			{"PUT", path, `{"registrationTimeUTC":99999999999999999999}`, 400, "registrationTimeUTC"},
			{"PUT", path, `{"payload":{"a":1}}`, 400, "payload: a JSON object"},
			{"PUT", path, `{"name":"shops"}`, 400, `"shops"`},
			{"PUT", path, `{"id":"b"}`, 400, `"b"`},
			{"PUT", path, `{"serviceType":"DYNAMIC"}`, 400, "DYNAMIC"},
			{"PUT", path, `{"serviceType":"DYNAMIC_SEQUENTIAL"}`, 400, "DYNAMIC_SEQUENTIAL"},
			{"PUT", path, `{"serviceType":"static"}`, 400, "STATIC"},
			{"PUT", path, `{"address":"` + strings.Repeat("a", 1<<20) + `"}`, 413, "bytes"},
			{"PUT", path, `{"payload":"` + strings.Repeat("😀", 1<<17) + `"}`, 413, "too large"}, // 3 times that in the node
			{"PUT", "/v1/service/orders/..%2Fa", minimal, 400, "invalid"},
			{"PUT", "/v1/service/orders/%2E%2E", minimal, 400, "invalid"},
			{"PUT", "/v1/service/%2F%2Forders/a", minimal, 400, "invalid"},
			{"PUT", "/v1/service/orders%2F%2Fb/a", minimal, 400, "invalid"},
			{"PUT", "/v1/service/orders/%00", minimal, 400, "invalid"},
			{"DELETE", "/v1/service/orders/%2E%2E", "", 400, "invalid"},
			{"GET", "/v1/service/orders/%2E", "", 400, "invalid"},
			{"GET", "/v1/service/%2E%2E", "", 400, "invalid"},
			{"GET", "/v1/anyservice/%2E%2E", "", 400, "invalid"},
			{"GET", "/v2/service", "", 404, ""},
			{"PUT", "/nothing", "", 404, ""},
			{"POST", path, minimal, 405, ""},
			{"PUT", "/v1/service/orders", minimal, 405, ""},
		} {
			s.wantRefused(test.method, test.path, test.body, test.code, test.part)
		}
		s.want("GET", "/v1/service", "", 200, "[]") // nothing has been written
		if got := s.send(s.handler, "POST", path, "").Header().Get("Allow"); got != "DELETE, GET, HEAD, PUT" {
			t.Errorf("allowed are %s", got)
		}
	})
}

func TestPutTakesJSONAlone(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		for contentType, code := range map[string]int{
			"application/json": 201, "application/json; charset=utf-8": 201, "Application/JSON;charset=\"UTF-8\"": 201,
			"": 415, "text/plain": 415, "application/json; charset=latin1": 415, "application/json;=": 415,
			"application/x-www-form-urlencoded": 415,
		} {
			r := httptest.NewRequestWithContext(s.ctx, "PUT", "/v1/service/orders/a", strings.NewReader(minimal))
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			if s.handler.ServeHTTP(w, r); w.Code != code {
				t.Errorf("%s: %d %s", contentType, w.Code, w.Body)
			}
		}
	})
}

// In Java a server forgets nothing, and deletes nothing but what it has registered itself.
func TestServersShareTheirInstances(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		another := rest.NewHandler(s.other)
		s.want("PUT", "/v1/service/orders/a", minimal, 201, "")
		s.want("PUT", "/v1/service/orders/b", minimal, 201, "")
		if w := s.send(another, "DELETE", "/v1/service/orders/a", ""); w.Code != 200 || s.isThere("orders", "a") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w := s.send(another, "PUT", "/v1/service/orders/b", `{"payload":"new"}`); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		s.expire()
		s.must(s.served.Register(s.ctx, discovery.NewServiceInstance[string]("orders", "", 1))) // it has settled
		if s.isThere("orders", "a") || s.instance("orders", "b").Payload != "new" {
			t.Error("the first server has put its instances back")
		}
		s.must(s.served.Close(s.ctx))
		if !s.isThere("orders", "b") {
			t.Error("the instance has gone with its server")
		}
	})
}

func TestPurgeIsThatOfAnyServer(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		s.want("PUT", "/v1/service/orders/old", `{"registrationTimeUTC":1}`, 201, "")
		s.want("PUT", "/v1/service/orders/permanent", `{"registrationTimeUTC":1,"serviceType":"PERMANENT"}`, 201, "")
		s.want("PUT", "/v1/service/orders/young", minimal, 201, "")
		n, err := s.other.Purge(s.ctx, time.Hour)
		s.must(err)
		if n != 1 || s.isThere("orders", "old") || !s.isThere("orders", "permanent") || !s.isThere("orders", "young") {
			t.Errorf("%d are purged", n)
		}
	})
}

func TestNodesOfSessionsAreNotReplaced(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		for d, id := range map[*discovery.ServiceDiscovery[string]]string{s.other: "theirs", s.served: "ours"} {
			i := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 8080)
			i.ID, i.Payload = id, id
			s.must(d.Register(s.ctx, i))
			s.wantRefused("PUT", "/v1/service/orders/"+id, minimal, 409, "node")
			if got := s.instance("orders", id); got.Payload != id {
				t.Errorf("it is %+v", got)
			}
		}
		s.want("DELETE", "/v1/service/orders/ours", "", 200, "") // for good
		if s.isThere("orders", "ours") {
			t.Error("it is there")
		}
		// A service is no instance.
		s.want("PUT", "/v1/service/orders%2Feu/a", minimal, 201, "")
		s.wantRefused("PUT", "/v1/service/orders/eu", minimal, 409, "belongs")
		s.wantRefused("DELETE", "/v1/service/orders/eu", "", 409, "children")
	})
}

func TestAnyServiceChoosesAmongEnabledInstances(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		for _, id := range []string{"a", "b", "disabled"} {
			i := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 8080)
			i.ID, i.Type, i.Disabled = id, discovery.Static, id == "disabled"
			s.must(s.other.RegisterOnce(s.ctx, i))
		}
		chosen := map[string]bool{}
		for range 200 { // one in 2^199 fails
			var got struct{ ID string }
			s.must(json.Unmarshal(s.send(s.handler, "GET", "/v1/anyservice/orders", "").Body.Bytes(), &got))
			chosen[got.ID] = true
		}
		if diff := cmp.Diff(map[string]bool{"a": true, "b": true}, chosen); diff != "" {
			t.Errorf("chosen:\n%s", diff)
		}
		s.want("DELETE", "/v1/service/orders/a", "", 200, "")
		s.want("DELETE", "/v1/service/orders/b", "", 200, "")
		s.wantRefused("GET", "/v1/anyservice/orders", "", 404, "no instance")
	})
}

// In Java it fails the queries of the whole service.
func TestNodeThatIsNoInstanceFailsNoOther(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		s.want("PUT", "/v1/service/orders/b", minimal, 201, "")
		b := s.send(s.handler, "GET", "/v1/service/orders/b", "").Body.String()
		_, err := s.reader.Create().ForPath(s.ctx, base+"/orders/a", []byte("no instance"))
		s.must(err)
		s.want("GET", "/v1/service/orders", "", 200, "["+strings.TrimSpace(b)+"]")
		s.wantRefused("GET", "/v1/service/orders/a", "", 500, "no instance")
		s.want("DELETE", "/v1/service/orders/a", "", 200, "")
		s.wantRefused("GET", "/v1/service/orders/a", "", 404, "no instance")
	})
}

// requests is one of each kind.
var requests = [][2]string{
	{"PUT", "/v1/service/orders/a"},
	{"DELETE", "/v1/service/orders/a"},
	{"GET", "/v1/service/orders/a"},
	{"GET", "/v1/service/orders"},
	{"GET", "/v1/service"},
	{"GET", "/v1/anyservice/orders"},
	{"GET", "/orders/a"},
}

func TestOutageIsServiceUnavailable(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		s.want("PUT", "/v1/service/orders/a", minimal, 201, "")
		restore := s.place.Faults().RefuseConnects()
		defer restore()
		s.place.Faults().CutAll()
		for _, r := range requests {
			short, cancel := context.WithTimeout(s.ctx, 20*time.Millisecond)
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(short, r[0], r[1], strings.NewReader(minimal))
			req.Header.Set("Content-Type", jsonType)
			s.handler.ServeHTTP(w, req)
			cancel()
			if w.Code != 503 || w.Body.Len() == 0 {
				t.Errorf("%s %s: %d %s", r[0], r[1], w.Code, w.Body)
			}
		}
	})
}

// No retry has an answer.
func TestLostConnectionIsServiceUnavailable(t *testing.T) {
	for _, r := range requests {
		t.Run(fmt.Sprint(r), func(t *testing.T) {
			inScene(t, func(s *scene[string]) {
				s.want("PUT", "/v1/service/orders/a", minimal, 201, "")
				cut := s.place.Faults().Add(curatortest.Rule{
					Ops: []string{"create2", "delete", "getData", "getChildren2"}, Action: curatortest.CutAfter,
				})
				s.wantRefused(r[0], r[1], minimal, 503, "")
				cut.Remove()
			})
		})
	}
}

func TestDiscoveryThatDoesNotRunIsServiceUnavailable(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		d := discovery.New[string](s.client, base)
		s.handler = rest.NewHandler(d)
		for _, prepare := range []func() error{
			func() error { return nil }, d.Start, func() error { return d.Close(s.ctx) },
		} {
			s.must(prepare())
			w := s.send(s.handler, "GET", "/v1/service", "")
			for _, r := range requests {
				if w.Code != 200 {
					s.wantRefused(r[0], r[1], minimal, 503, "discovery: ")
				}
			}
		}
		s.must(s.client.Close())
		s.handler = rest.NewHandler(s.served)
		for _, r := range requests {
			s.wantRefused(r[0], r[1], minimal, 503, "closed")
		}
	})
}

func TestStripPrefix(t *testing.T) {
	inScene(t, func(s *scene[string]) {
		mux := http.NewServeMux()
		mux.Handle("/discovery/", http.StripPrefix("/discovery", s.handler))
		s.handler = mux
		s.want("PUT", "/discovery/v1/service/shops%2Feu/a%20b", `{"registrationTimeUTC":0}`, 201, "")
		s.want("GET", "/discovery/v1/service/shops%2Feu/a%20b", "", 200,
			`{"name":"shops/eu","id":"a b","address":null,"registrationTimeUTC":0,"serviceType":"STATIC","payload":""}`)
		s.wantRefused("GET", "/v1/service", "", 404, "")
	})
}
