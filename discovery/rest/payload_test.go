package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/gocurator/curator/discovery"
)

// meta is a payload that Java has a class for.
type meta struct {
	Zone string `json:"zone"`
}

// round puts a payload and compares what is in the node and in the answer of a GET.
func round[T any](t *testing.T, put, node, get string, opts ...discovery.Option) {
	t.Helper()
	t.Run(fmt.Sprintf("%T %s", *new(T), put), func(t *testing.T) {
		inScene(t, func(s *scene[T]) {
			s.want("PUT", "/v1/service/orders/a", `{"registrationTimeUTC":1,"payload":`+put+`}`, 201, "")
			s.want("GET", "/v1/service/orders/a", "", 200, `{"name":"orders","id":"a","address":null,`+
				`"registrationTimeUTC":1,"serviceType":"STATIC","payload":`+get+`}`)
			data, err := s.reader.GetData().ForPath(s.ctx, base+"/orders/a")
			s.must(err)
			var members struct{ Payload json.RawMessage }
			if s.must(json.Unmarshal(data, &members)); string(members.Payload) != node {
				t.Errorf("the node has %s, want %s", members.Payload, node)
			}
		}, opts...)
	})
}

// The body has no class, the node has the one that Java reads.
func TestPayloadsOfAllKinds(t *testing.T) {
	class := discovery.WithPayloadClass("com.acme.Meta")
	round[string](t, `"eu"`, `"eu"`, `"eu"`)
	round[int32](t, `5`, `5`, `5`)
	round[int64](t, `5`, `["java.lang.Long",5]`, `5`)
	round[meta](t, `{"zone":"eu"}`, `{"@class":"com.acme.Meta","zone":"eu"}`, `{"zone":"eu"}`, class)
	round[meta](t, `null`, `{"@class":"com.acme.Meta","zone":""}`, `{"zone":""}`, class)
	round[*meta](t, `null`, `null`, `null`, class)
	round[map[string]int32](t, `{"a":1}`, `{"@class":"java.util.LinkedHashMap","a":1}`, `{"a":1}`)
	round[any](t, `12345678901234567890`, `["java.math.BigInteger",12345678901234567890]`, `12345678901234567890`)
	round[json.RawMessage](t, `["java.util.Date",1]`, `["java.util.Date",1]`, `["java.util.Date",1]`)
	round[struct{}](t, `null`, `null`, `{}`)
}

// fragile panics on its way in or out.
type fragile string

func (f *fragile) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"error"`:
		return errors.New("not this one")
	case `"panic"`:
		panic("not that one")
	}
	*f = fragile(data)
	return nil
}

func (f fragile) MarshalJSON() ([]byte, error) { panic("nor this one") }

// withoutPayload is a serializer that looks at no payload.
type withoutPayload struct{}

func (withoutPayload) Encode(discovery.ServiceInstance[fragile]) ([]byte, error) {
	return []byte("a"), nil
}

func (withoutPayload) Decode(data []byte) (discovery.ServiceInstance[fragile], error) {
	return discovery.ServiceInstance[fragile]{Name: "orders", ID: string(data)}, nil
}

func TestPayloadThatPanicsIsAnError(t *testing.T) {
	inScene(t, func(s *scene[fragile]) {
		const path = "/v1/service/orders/a"
		s.wantRefused("PUT", path, `{"payload":"error"}`, 400, "not this one")
		s.wantRefused("PUT", path, `{"payload":"panic"}`, 500, "not that one")
		s.want("PUT", path, `{"payload":"eu"}`, 201, "")
		s.wantRefused("GET", path, "", 500, "nor this one")
		s.want("GET", "/v1/service/orders", "", 200, "[]")
		s.wantRefused("GET", "/v1/anyservice/orders", "", 500, "nor this one")
	}, discovery.WithSerializer(withoutPayload{}))
}

func TestPayloadThatCannotBeWrittenIsAnError(t *testing.T) {
	inScene(t, func(s *scene[fragile]) {
		s.wantRefused("PUT", "/v1/service/orders/a", `{"payload":"eu"}`, 500, "nor this one")
		s.want("GET", "/v1/service", "", 200, "[]")
	}, discovery.WithoutPayloadClass())
}

// A payload that JSON does not have, as Java writes it, fails the query of no other.
func TestPayloadWithoutJSONFailsNoOther(t *testing.T) {
	inScene(t, func(s *scene[float64]) {
		const one = `{"name":"orders","id":"b","address":null,"registrationTimeUTC":1,"serviceType":"STATIC","payload":1.5}`
		for id, payload := range map[string]float64{"a": math.NaN(), "b": 1.5, "c": math.Inf(1)} {
			s.must(s.other.RegisterOnce(s.ctx, discovery.ServiceInstance[float64]{
				Name: "orders", ID: id, Payload: payload, Type: discovery.Static, RegistrationTime: time.UnixMilli(1),
			}))
		}
		s.want("GET", "/v1/service/orders", "", 200, "["+one+"]")
		for range 20 {
			s.want("GET", "/v1/anyservice/orders", "", 200, one)
		}
		s.wantRefused("GET", "/v1/service/orders/a", "", 500, "NaN")
	})
}
