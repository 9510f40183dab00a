package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestDemoShowsWhatHappens(t *testing.T) {
	line, _ := following(t, strings.Fields("demo"))
	var connect string
	for connect == "" {
		_, connect, _ = strings.Cut(line(), "CURATOR_CONNECT=")
	}
	// What a new user sees, in any order.
	wanted := []string{
		"/demo/leader host-# leads", "/demo/locks/orders host-# holds", "/demo/locks/orders host-# waits",
		"/demo/locks/orders host-# no longer holds", "/demo/licences host-# holds", "/demo/services/shop host-# member",
		"/demo/services/shop host-# no longer member", "/demo/leader host-# no longer leads",
		"/demo/jobs-locks queue-########## done",
	}
	for len(wanted) > 0 {
		text := line()
		words := strings.Fields(text)
		if len(words) < 4 {
			continue
		}
		masked := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '#'
			}
			return r
		}, strings.Join(words[1:], " "))
		for i, want := range wanted {
			if masked == want {
				wanted = append(wanted[:i], wanted[i+1:]...)
				break
			}
		}
	}
	got := invoke(t.Context(), []string{"holders", "/demo"}, "CURATOR_CONNECT="+connect)
	if got.code != CodeOK || !strings.Contains(got.stdout, "/demo/locks/orders") {
		t.Errorf("holders: %+v", got)
	}
}

func TestDemoHasLinesOfJSON(t *testing.T) {
	line, _ := following(t, strings.Fields("demo -o json --servers 1"))
	var r ready
	testclient.Must(t, json.Unmarshal([]byte(line()), &r))
	if !r.Ready || r.Connect == "" || strings.Contains(r.Connect, ",") {
		t.Errorf("the first line: %+v", r)
	}
	var h holder
	testclient.Must(t, json.Unmarshal([]byte(line()), &h))
	if h.Change != "added" || h.Recipe == "" {
		t.Errorf("the second line: %+v", h)
	}
}

func TestDemoEndsInTime(t *testing.T) {
	got := invoke(t.Context(), strings.Fields("demo --quiet --for 300ms"))
	if got.code != CodeOK || got.stderr != "" {
		t.Errorf("demo: %+v", got)
	}
	if got := invoke(t.Context(), strings.Fields("demo --servers 0")); got.code != CodeUsage {
		t.Errorf("demo without servers: %+v", got)
	}
}
