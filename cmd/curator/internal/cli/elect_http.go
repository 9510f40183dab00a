package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/gocurator/curator/cmd/curator/internal/connect"
	"github.com/gocurator/curator/cmd/curator/internal/guard"
	"github.com/gocurator/curator/cmd/curator/internal/run"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
)

// answerTimeout bounds the question to the servers who leads, readTimeout the time that a caller takes for its
// question.
const (
	answerTimeout = time.Second
	readTimeout   = 5 * time.Second
)

// shutdownTimeout bounds the wait for answers under way.
const shutdownTimeout = 2 * answerTimeout

const electHelp = `
With --http it runs no command, and answers other processes until a signal comes:
  GET /leader  200 while it leads, 503 when it does not or cannot be sure. A 200 counts for validMs of its JSON,
               in milliseconds from the moment at which the question was sent
  GET /ready   200 while it is connected
  GET /live    200
`

// electServer answers processes on the same host that cannot take part in an election themselves.
type electServer struct {
	hold     *holdCommand
	client   *framework.Client
	latch    *leader.LeaderLatch
	validFor time.Duration

	mu       sync.Mutex
	promised guard.Time // the end of the last answer that this process leads
	closing  bool       // no such answer any more
}

// leaderAnswer is the body of /leader.
type leaderAnswer struct {
	Leading bool   `json:"leading"`
	ID      string `json:"id"`
	State   string `json:"state"` // of the connection
	// Path and Token are those of the term.
	Path  string `json:"path,omitempty"`
	Token int64  `json:"token,omitempty"`
	// Valid is the time for which the answer counts, from the moment at which the caller has sent its question.
	Valid int64 `json:"validMs,omitempty"`
	// Leader is the id of whoever leads, by the servers; "" if that is nobody, or unknown.
	Leader string `json:"leader,omitempty"`
}

// serve takes part in the election, and answers until a signal comes.
func (h *holdCommand) serve(ctx context.Context, path, address, id string, validFor time.Duration) error {
	switch {
	case validFor < time.Millisecond:
		return usage(errors.New("--valid-for must be 1ms at least"))
	case h.margin <= 0:
		return usage(errors.New("--margin must be positive"))
	}
	conf, err := h.app.connect.Resolve(h.app.Getenv)
	if err != nil {
		return usage(err)
	}
	if conf.SessionTimeout <= h.margin { // it would lead, and say so to nobody
		return exit(CodeRefused, fmt.Errorf("%w: %v, with a margin of %v; set --session-timeout or --margin",
			run.ErrTooShort, conf.SessionTimeout, h.margin))
	}
	signals := make(chan os.Signal, 1)
	guard.Notify(signals, ending...)
	defer signal.Stop(signals)

	// The port answers while there is no connection yet, so that a container is not restarted for an outage.
	listener, err := listen(ctx, "http", address)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server has closed it, if there was one
	client, err := conf.Start(h.clientOptions()...)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the session ends in any case
	s := &electServer{
		hold: h, client: client, latch: leader.NewLeaderLatch(client, path, leader.WithID(id)), validFor: validFor,
	}
	remove := s.latch.AddListener(func(_ context.Context, e leader.LatchEvent) {
		if e.IsLeader {
			h.event(run.Event{Event: "leading", Path: path})
		} else {
			h.event(run.Event{Event: "following", Path: path})
		}
	})
	defer remove()
	h.event(run.Event{Event: "listening", Address: listener.Addr().String()}) // before "leading"
	defer h.sayWhatIsAwaited(ctx, conf, client, path)()
	if err := s.latch.Start(); err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler(), ReadTimeout: readTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	select {
	case err = <-served:
	case <-signals:
	case <-ctx.Done():
	}
	s.resign()
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if server.Shutdown(shutdown) != nil {
		_ = server.Close() // who has connected and asks nothing gets no answer
	}
	return err
}

// sayWhatIsAwaited says on the standard error that there is no connection yet, or who leads. The caller calls stop.
func (h *holdCommand) sayWhatIsAwaited(
	ctx context.Context, conf connect.Config, client *framework.Client, path string,
) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	conf.Timeout = math.MaxInt64 // it waits as long as it takes
	refused := make(chan error, 1)
	remove := onRefusal(client, func(err error) {
		select {
		case refused <- err:
		default: // it is known
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := conf.Await(ctx, client, h.waits)
		if err == nil {
			err = conf.CheckChroot(ctx, client)
		}
		if err != nil {
			if text := message(err); text != "" {
				h.waits(text)
			}
			return
		}
		defer h.sayBehindWhom(ctx, client, path)()
		select {
		case <-ctx.Done():
		case err := <-refused:
			h.waits(message(explain(ctx, client, err)))
		}
	}()
	return func() {
		cancel()
		<-done
		remove()
	}
}

// resign lets others lead when no answer that this process leads counts any more.
func (s *electServer) resign() {
	s.mu.Lock()
	s.closing = true
	left := s.promised.Sub(guard.Now())
	s.mu.Unlock()
	<-time.After(max(left, 0))
	_ = s.latch.Close() // the end of the session deletes its node too
}

func (s *electServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /leader", func(w http.ResponseWriter, r *http.Request) {
		a := s.answer(r.Context())
		code := http.StatusOK
		if !a.Leading {
			code = http.StatusServiceUnavailable
		}
		reply(w, code, a)
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		code := http.StatusOK
		if !s.client.IsConnected() {
			code = http.StatusServiceUnavailable
		}
		reply(w, code, struct {
			State string `json:"state"`
		}{s.client.Health().State.String()})
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, struct {
			State string `json:"state"`
		}{s.client.Health().State.String()})
	})
	return mux
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the caller may be gone
}

// answer says whether this process leads, and for how long that counts.
func (s *electServer) answer(ctx context.Context) leaderAnswer {
	now := guard.Now() // before the clock of the session
	term := s.latch.Leadership()
	health := s.client.Health()
	a := leaderAnswer{ID: s.latch.ID(), State: health.State.String()}
	valid := min(health.SessionLeft-s.hold.margin, s.validFor)
	// A session that follows has no term of this one: the context is looked at last.
	if term != nil && valid >= time.Millisecond && term.Context().Err() == nil && s.promise(now.Add(valid)) {
		a.Leading, a.Path, a.Token, a.Valid, a.Leader = true, term.Path(), term.Token(), valid.Milliseconds(), a.ID
		return a
	}
	if s.client.IsConnected() {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		if p, err := s.latch.Leader(ctx); err == nil {
			a.Leader = p.ID
		}
	}
	return a
}

// promise notes an answer that counts until a time, and reports false if this process resigns.
func (s *electServer) promise(until guard.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.promised = max(s.promised, until)
	return !s.closing
}
