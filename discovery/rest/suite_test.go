package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/rest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

const (
	base     = "/services"
	jsonType = "application/json"
	// minimal is a body that leaves out all that it may.
	minimal = `{"address":"10.0.0.7","port":8080}`
)

// scene is a discovery behind a handler, and another one that looks at its nodes.
type scene[T any] struct {
	*testing.T
	ctx     context.Context
	place   testenv.Place
	client  *framework.Client
	reader  *framework.Client
	served  *discovery.ServiceDiscovery[T]
	other   *discovery.ServiceDiscovery[T]
	handler http.Handler
}

// inScene runs a test in virtual time, on Apache ZooKeeper in real time. The way of the handler has faults.
func inScene[T any](t *testing.T, test func(s *scene[T]), opts ...discovery.Option) {
	t.Helper()
	t.Parallel()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		connect := func(place testenv.Place) *framework.Client {
			return testclient.ConnectAt(t, place, chroot, framework.WithSessionTimeout(testenv.SessionTimeout),
				framework.WithRetryPolicy(retry.NTimes(5, 10*time.Millisecond)))
		}
		s := &scene[T]{T: t, ctx: testenv.Context(t), place: one, client: connect(one), reader: connect(two)}
		s.served, s.other = s.discover(s.client, opts...), s.discover(s.reader, opts...)
		s.handler = rest.NewHandler(s.served)
		test(s)
	})
}

func (s *scene[T]) discover(client *framework.Client, opts ...discovery.Option) *discovery.ServiceDiscovery[T] {
	s.Helper()
	d := discovery.New[T](client, base, opts...)
	s.must(d.Start())
	s.Cleanup(func() { _ = d.Close(context.WithoutCancel(s.ctx)) })
	return d
}

func (s *scene[T]) must(err error) {
	s.Helper()
	testclient.Must(s.T, err)
}

// send sends a request to a handler. A PUT has the type of JSON.
func (s *scene[T]) send(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequestWithContext(s.ctx, method, path, strings.NewReader(body))
	if method == http.MethodPut {
		r.Header.Set("Content-Type", jsonType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// want sends a request and compares its answer. JSON ends with a line feed.
func (s *scene[T]) want(method, path, body string, code int, answer string) {
	s.Helper()
	w := s.send(s.handler, method, path, body)
	if got := w.Body.String(); w.Code != code || strings.TrimSuffix(got, "\n") != answer {
		s.Errorf("%s %s: %d %s\nwant %d %s", method, path, w.Code, got, code, answer)
	}
	wantType := ""
	if answer != "" {
		wantType = jsonType
	}
	if got := w.Header().Get("Content-Type"); got != wantType {
		s.Errorf("%s %s: the type is %q", method, path, got)
	}
}

// wantRefused sends a request and looks for the code and a part of the text of its refusal.
func (s *scene[T]) wantRefused(method, path, body string, code int, part string) {
	s.Helper()
	w := s.send(s.handler, method, path, body)
	if w.Code != code || !strings.Contains(w.Body.String(), part) || strings.Contains(w.Body.String(), "goroutine") {
		s.Errorf("%s %s %.100s: %d %s\nwant %d %s", method, path, body, w.Code, w.Body.String(), code, part)
	}
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
		s.Errorf("%s %s: the type is %q", method, path, got)
	}
}

// instance returns an instance as the other discovery finds it.
func (s *scene[T]) instance(name, id string) discovery.ServiceInstance[T] {
	s.Helper()
	i, err := s.other.Instance(s.ctx, name, id)
	s.must(err)
	return i
}

// isThere reports whether the servers have an instance.
func (s *scene[T]) isThere(name, id string) bool {
	s.Helper()
	_, err := s.other.Instance(s.ctx, name, id)
	if err != nil && !errors.Is(err, discovery.ErrNoInstance) {
		s.Fatal(err)
	}
	return err == nil
}

// expire ends the session of the handler on the servers and waits for the next one.
func (s *scene[T]) expire() {
	s.Helper()
	reconnected := testclient.AwaitState(s.ctx, s, s.client, framework.Reconnected)
	session := s.client.SessionID()
	if server, ok := s.place.(interface{ ExpireSession(id int64) error }); ok {
		s.must(server.ExpireSession(session))
	} else {
		s.must(testenv.Server(s).ExpireSession(session))
	}
	reconnected()
}
