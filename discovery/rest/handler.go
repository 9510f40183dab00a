package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/waitqueue"
)

// maxBody is the size of the largest node that a server of ZooKeeper takes by default.
const maxBody = 1 << 20

const jsonType = "application/json"

// NewHandler returns a handler that serves a discovery at /v1/… of the host. [http.StripPrefix] puts it elsewhere. It
// has nothing to close and does no I/O before the first request. The discovery has to be started: before, and after
// its Close, each request is answered with 503. In Java: DiscoveryResource.
func NewHandler[T any](d *discovery.ServiceDiscovery[T]) http.Handler {
	h := handler[T]{d}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*http.Request) (reply, error){
		"PUT /v1/service/{name}/{id}":    h.put,
		"DELETE /v1/service/{name}/{id}": h.remove,
		"GET /v1/service/{name}/{id}":    h.get,
		"GET /v1/service/{name}":         h.list,
		"GET /v1/service":                h.names,
		"GET /v1/anyservice/{name}":      h.pick,
		"GET /{name}/{id}":               h.getDeprecated,
	} {
		mux.HandleFunc(pattern, answer(serve))
		mux.HandleFunc(pattern+"/{$}", answer(serve)) // which JAX-RS takes for the same
	}
	return mux
}

type handler[T any] struct {
	d *discovery.ServiceDiscovery[T]
}

// reply is what a request that has not failed is answered with.
type reply struct {
	code    int
	warning string
	body    any // nil for none
}

// failure is an error with its code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }

func refuse(code int, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

// answer turns a function into a handler.
func answer(serve func(*http.Request) (reply, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		var body bytes.Buffer
		a, err := prepare(serve, r, &body)
		if err != nil {
			http.Error(w, usercode.WithoutStack(err), codeOf(err))
			return
		}
		if a.warning != "" {
			w.Header().Set("Warning", a.warning)
		}
		if a.body != nil {
			w.Header().Set("Content-Type", jsonType)
		}
		w.WriteHeader(a.code)
		_, _ = w.Write(body.Bytes()) // the caller has gone
	}
}

// prepare has the answer before the first byte of it is sent: what is left to fail is the connection.
func prepare(serve func(*http.Request) (reply, error), r *http.Request, body *bytes.Buffer) (a reply, err error) {
	defer usercode.Catch("the payload", &err)
	if a, err = serve(r); err != nil || a.body == nil {
		return a, err
	}
	return a, encode(body, a.body)
}

// encode writes a value. The methods of a payload may panic.
func encode(body *bytes.Buffer, value any) (err error) {
	defer usercode.Catch("the payload", &err)
	e := json.NewEncoder(body)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// textOf returns the JSON of an instance. Not every payload has one: NaN, for example.
func textOf[T any](i discovery.ServiceInstance[T]) (json.RawMessage, error) {
	var text bytes.Buffer
	err := encode(&text, entityOf(i))
	return text.Bytes(), err
}

// codeOf returns the status code of an error.
func codeOf(err error) int {
	if f := (*failure)(nil); errors.As(err, &f) {
		return f.code
	}
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(discovery.ErrNoInstance):
		return http.StatusNotFound
	case is(zk.ErrInvalidPath), is(framework.ErrBadArguments):
		return http.StatusBadRequest
	case is(discovery.ErrForeign), is(discovery.ErrInUse), is(zk.ErrNotEmpty):
		return http.StatusConflict
	case is(framework.ErrRequestTooLarge):
		return http.StatusRequestEntityTooLarge
	case waitqueue.IsPassing(err), slices.ContainsFunc([]error{
		framework.ErrUncertain, framework.ErrClosed, framework.ErrNotStarted, framework.ErrTooManyPending,
		framework.ErrNotReadOnly, framework.ErrSessionLost, framework.ErrSessionFailed,
		context.Canceled, context.DeadlineExceeded,
	}, is):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func (h handler[T]) put(r *http.Request) (a reply, err error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || mediaType != jsonType || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return a, refuse(http.StatusUnsupportedMediaType, "the content type is not %s", jsonType)
	}
	instance, err := read[T](r)
	if err != nil {
		return a, err
	}
	return reply{code: http.StatusCreated}, h.d.RegisterOnce(r.Context(), instance)
}

func (h handler[T]) remove(r *http.Request) (reply, error) {
	instance := discovery.ServiceInstance[T]{Name: r.PathValue("name"), ID: r.PathValue("id")}
	return reply{code: http.StatusOK}, h.d.Unregister(r.Context(), instance)
}

func (h handler[T]) get(r *http.Request) (reply, error) {
	instance, err := h.d.Instance(r.Context(), r.PathValue("name"), r.PathValue("id"))
	return reply{code: http.StatusOK, body: entityOf(instance)}, err
}

func (h handler[T]) getDeprecated(r *http.Request) (reply, error) {
	a, err := h.get(r)
	a.warning = `299 - "deprecated: GET v1/service/{name}/{id}"`
	return a, err
}

func (h handler[T]) list(r *http.Request) (reply, error) {
	instances, err := h.d.Instances(r.Context(), r.PathValue("name"))
	texts := make([]json.RawMessage, 0, len(instances)) // not nil, which would be null
	for _, instance := range instances {
		if text, err := textOf(instance); err == nil { // else it fails no other
			texts = append(texts, text)
		}
	}
	return reply{code: http.StatusOK, body: texts}, err
}

func (h handler[T]) names(r *http.Request) (reply, error) {
	type service struct {
		Name string `json:"name"`
	}
	names, err := h.d.Names(r.Context())
	services := make([]service, len(names))
	for i, name := range names {
		services[i].Name = name
	}
	return reply{code: http.StatusOK, body: services}, err
}

// pick asks the servers, as list does. A provider would be a cache for each name that somebody thinks of.
func (h handler[T]) pick(r *http.Request) (a reply, err error) {
	instances, err := h.d.Instances(r.Context(), r.PathValue("name"))
	if err != nil {
		return a, err
	}
	err = discovery.ErrNoInstance
	for _, n := range rand.Perm(len(instances)) {
		if instances[n].Disabled {
			continue
		}
		var text json.RawMessage
		if text, err = textOf(instances[n]); err == nil {
			return reply{code: http.StatusOK, body: text}, nil
		}
	}
	return a, err
}
