//go:build linux

package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/gocurator/curator/cmd/curator/internal/run"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/leader"
)

// ask returns the code and the body of an answer.
func ask(t *testing.T, address, path string) (int, leaderAnswer) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address + path)
	testclient.Must(t, err)
	defer response.Body.Close() //nolint:errcheck // it was read only
	var a leaderAnswer
	testclient.Must(t, json.NewDecoder(response.Body).Decode(&a))
	return response.StatusCode, a
}

func TestElectHTTPAnswersForTheLeaderAlone(t *testing.T) {
	environ, connect := connected(t)
	first := launch(t, environ, "", "elect", "--json", "--http", "127.0.0.1:0", "--id", "first", "/leader")
	one := first.await("listening").Address
	first.await("leading")
	code, a := ask(t, one, "/leader")
	if code != http.StatusOK || !a.Leading || a.ID != "first" || a.Leader != "first" || a.Token <= 0 ||
		a.Valid <= 0 || a.Valid > 1000 {
		t.Errorf("the leader answers %d %+v", code, a)
	}

	second := launch(t, environ, "", "elect", "--json", "--http", "127.0.0.1:0", "--id", "second", "/leader")
	two := second.await("listening").Address
	latch := leader.NewLeaderLatch(testclient.Connect(t, connect), "/leader")
	testenv.Eventually(t, func() bool {
		participants, err := latch.Participants(t.Context())
		return err == nil && len(participants) == 2
	}, "both take part")
	testenv.Eventually(t, func() bool { // it says nothing of the leader if the servers take too long to tell
		code, a := ask(t, two, "/leader")
		if code != http.StatusServiceUnavailable || a.Leading || a.Leader != "first" && a.Leader != "" {
			t.Errorf("the other answers %d %+v", code, a)
		}
		return a.Leader == "first"
	}, "the other names the leader")
	for _, path := range []string{"/ready", "/live"} {
		if code, a := ask(t, two, path); code != http.StatusOK || a.State == "" {
			t.Errorf("%s: %d %+v", path, code, a)
		}
	}

	// The last answer of the first one counts until another leads.
	asked := time.Now()
	_, last := ask(t, one, "/leader")
	testclient.Must(t, first.cmd.Process.Signal(syscall.SIGTERM))
	began := second.await("leading").Time
	if until := asked.Add(time.Duration(last.Valid) * time.Millisecond); !last.Leading || began.Before(until) {
		t.Errorf("another led %v before the end of an answer", until.Sub(began))
	}
	if code := first.wait(); code != CodeOK {
		t.Errorf("code %d: %s", code, first.errors())
	}
	if code, b := ask(t, two, "/leader"); code != http.StatusOK || b.Token <= a.Token {
		t.Errorf("the new leader answers %d %+v", code, b)
	}
}

// TestElectHTTPPromisesNothingMoreBehindSIGTERM asks between the signal and the end of the last answer.
func TestElectHTTPPromisesNothingMoreBehindSIGTERM(t *testing.T) {
	environ, _ := connected(t)
	p := launch(t, environ, "", "elect", "--json", "--session-timeout", "2m", "--valid-for", "30s", "--http",
		"127.0.0.1:0", "/leader")
	address := p.await("listening").Address
	p.await("leading")
	if code, a := ask(t, address, "/leader"); code != http.StatusOK || a.Valid <= 0 {
		t.Fatalf("the leader answers %d %+v", code, a)
	}
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	testenv.Eventually(t, func() bool {
		code, a := ask(t, address, "/leader")
		return code == http.StatusServiceUnavailable && !a.Leading && a.Valid == 0
	}, "the leader promises nothing more")
}

// TestElectHTTPEndsWithAnOpenConnection has a caller that has connected and asks nothing, as a load balancer may.
func TestElectHTTPEndsWithAnOpenConnection(t *testing.T) {
	environ, _ := connected(t)
	p := launch(t, environ, "", "elect", "--json", "--http", "127.0.0.1:0", "/leader")
	address := p.await("listening").Address
	p.await("leading")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	testclient.Must(t, err)
	defer conn.Close()       //nolint:errcheck // it is the end
	ask(t, address, "/live") // behind it: the connection is accepted
	testclient.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if code := p.wait(); code != CodeOK {
		t.Errorf("code %d: %s", code, p.errors())
	}
}

func TestElectHTTPDoubtIsNoLeadership(t *testing.T) {
	proxy, connect := testclient.Proxy(t, testenv.Chroot(t))
	p := launch(t, []string{"CURATOR_CONNECT=" + connect}, "", "elect", "--json", "--session-timeout", "4s",
		"--http", "127.0.0.1:0", "/leader")
	const margin = run.DefaultMargin
	address := p.await("listening").Address
	p.await("leading")
	host, err := os.Hostname()
	testclient.Must(t, err)
	if code, a := ask(t, address, "/leader"); code != http.StatusOK || a.ID != host {
		t.Errorf("the leader answers %d %+v, want the id %s", code, a, host)
	}
	thaw := proxy.Faults().Freeze()
	var until time.Time // the end of the last answer
	testenv.Eventually(t, func() bool {
		asked := time.Now()
		code, a := ask(t, address, "/leader")
		if code == http.StatusOK {
			if a.Valid <= 0 {
				t.Errorf("an answer that counts for no time: %+v", a)
			}
			until = asked.Add(time.Duration(a.Valid) * time.Millisecond)
		}
		return code == http.StatusServiceUnavailable
	}, "the answer is that nothing is sure")
	if ended := p.await("following").Time; until.Add(margin).After(ended) {
		t.Errorf("an answer counted until %v before the end of the session, want %v", ended.Sub(until), margin)
	}
	if code, _ := ask(t, address, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready is %d", code)
	}
	if code, _ := ask(t, address, "/live"); code != http.StatusOK {
		t.Errorf("/live is %d", code)
	}
	thaw()
	p.await("leading")
}
