package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/zkpath"
)

// contend creates the node of a contender, as a mutex does.
func contend(t *testing.T, client *framework.Client, path, who string) (node string) {
	t.Helper()
	node, err := client.Create().CreatingParentsIfNeeded().WithProtection().WithMode(builders.EphemeralSequential).
		ForPath(t.Context(), path+"/lock-", []byte(who))
	testclient.Must(t, err)
	return node
}

func TestHoldersPrintsWhoWaitsForWhom(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	first, second := contend(t, client, "/locks/a", "one"), contend(t, client, "/locks/a", "two\x1b[2J")
	got := invoke(t.Context(), []string{"holders", "/locks"}, environ...)
	lines := strings.Split(got.stdout, "\n")
	if len(lines) != 4 || got.code != CodeOK {
		t.Fatalf("holders: %+v", got)
	}
	for i, want := range [][]string{
		{"PATH", "RECIPE", "STATE", "WHO"},
		{"/locks/a", "lock", "holds", "one", "lock-0000000000", "-"},
		{"/locks/a", "lock", "waits", "-", "lock-0000000001", "lock-0000000000"}, // no control sequences of others
	} {
		fields := strings.Fields(lines[i])
		if i > 0 {
			fields = append(fields[:4:4], fields[7:]...)
		} else {
			fields = fields[:4]
		}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
	var h holder
	got = invoke(t.Context(), []string{"holders", "/locks/a", "-o", "json"}, environ...)
	testclient.Must(t, json.Unmarshal([]byte(strings.Split(got.stdout, "\n")[1]), &h))
	if h.Node != zkpath.Node(second) || h.For != zkpath.Node(first) || h.Session != output.Session(client.SessionID()) ||
		h.Token == 0 || time.Since(h.Since) > time.Hour {
		t.Errorf("holders -o json: %+v", h)
	}
	if got := invoke(t.Context(), []string{"holders", "/none"}, environ...); got.code != CodeNoNode {
		t.Errorf("holders of no node: %+v", got)
	}
	got = invoke(t.Context(), []string{"holders", "/", "--recipe", "latch", "-o", "json"}, environ...)
	if got.stdout != "" {
		t.Errorf("holders --recipe latch: %+v", got)
	}
}

func TestHoldersShortensLongLines(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	for range maxRows + 5 {
		contend(t, client, "/l", "x")
	}
	got := invoke(t.Context(), []string{"holders", "/l"}, environ...)
	if n := strings.Count(got.stdout, "\n"); n != maxRows+2 || !strings.Contains(got.stdout, "… 5 more") {
		t.Errorf("%d lines: %s", n, got.stdout)
	}
	got = invoke(t.Context(), []string{"holders", "/l", "--all"}, environ...)
	if n := strings.Count(got.stdout, "\n"); n != maxRows+6 {
		t.Errorf("%d lines with --all", n)
	}
}

func TestHoldersFollowsChanges(t *testing.T) {
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	first, second := contend(t, client, "/l", "one"), contend(t, client, "/l", "two")
	line, _ := following(t, strings.Fields("holders /l --follow -o json"), "CURATOR_CONNECT="+server.ConnectString())
	want := func(change, node, state string) {
		t.Helper()
		var h holder
		testclient.Must(t, json.Unmarshal([]byte(line()), &h))
		got := []string{h.Change, h.Node, h.State}
		if diff := cmp.Diff([]string{change, zkpath.Node(node), state}, got); diff != "" {
			t.Errorf("change (-want +got):\n%s", diff)
		}
	}
	want("added", first, "holds")
	want("added", second, "waits")
	testclient.Must(t, client.Delete().ForPath(t.Context(), first))
	want("removed", first, "holds")
	want("changed", second, "holds")

	server.Faults().CutAll() // what changes meanwhile is seen afterwards
	third := contend(t, client, "/l", "three")
	want("added", third, "waits")
}

// TestHoldersOfManyNodes reads many nodes, at full length 100,000, with at most 50 requests in flight. It prints how
// long that takes.
func TestHoldersOfManyNodes(t *testing.T) {
	const items = 999
	queues := testenv.Size(10, 10, 100)
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	for q := range queues {
		path := fmt.Sprintf("/q%03d", q)
		ops := []builders.TransactionOperation{client.TransactionOp().Create().ForPath(path, []byte{})}
		for i := range items {
			ops = append(ops, client.TransactionOp().Create().ForPath(fmt.Sprintf("%s/queue-%010d", path, i), []byte("item")))
		}
		_, err := client.Transaction().ForOperations(testenv.Context(t), ops...)
		testclient.Must(t, err)
	}
	server.Faults().ResetTrace()
	begun := time.Now()
	got := invoke(t.Context(), []string{"holders", "/", "-o", "json"}, "CURATOR_CONNECT="+server.ConnectString())
	took := time.Since(begun)
	if n := strings.Count(got.stdout, "\n"); n != queues*items || got.code != CodeOK {
		t.Errorf("%d lines, code %d: %s", n, got.code, got.stderr)
	}
	inFlight, most := 0, 0
	for _, e := range server.Trace() {
		switch {
		case e.Xid <= 0:
		case e.Reply:
			inFlight--
		default:
			inFlight++
			most = max(most, inFlight)
		}
	}
	t.Logf("%d nodes in %v, %d requests in flight", queues*(items+1), took, most)
	if most > 50 || most < 2 {
		t.Errorf("%d requests in flight", most)
	}
}

func TestAge(t *testing.T) {
	now := time.Now()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59*time.Second + 999*time.Millisecond: "59s", time.Minute: "1m", 61 * time.Minute: "1h1m",
		20 * time.Hour: "20h0m", 49 * time.Hour: "2d",
	} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("age of %v: %q, want %q", d, got, want)
		}
	}
}
