package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/testserver"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/interop"
)

// control is a server under test.
type control struct {
	t     *testing.T
	ready ready
	lines *bufio.Scanner
	in    *io.PipeWriter
	done  chan int
}

// startServer starts "curator server", which ends with the test.
func startServer(t *testing.T, args ...string) *control {
	t.Helper()
	c, err := tryServer(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryServer(t *testing.T, args ...string) (*control, error) {
	t.Helper()
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	env := environment(nil)
	env.Args, env.Stdin, env.Stdout, env.Stderr = append([]string{"server"}, args...), stdin, stdout, &stderr
	c := &control{t: t, lines: bufio.NewScanner(out), in: in, done: make(chan int, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.done <- Main(ctx, env)
		_ = stdout.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_ = in.Close()
		_ = out.Close()
		<-ended
	})
	if !c.lines.Scan() {
		<-ended
		return nil, fmt.Errorf("no line: %s", stderr.String())
	}
	testclient.Must(t, json.Unmarshal(c.lines.Bytes(), &c.ready))
	if !c.ready.Ready {
		t.Fatalf("the first line: %s", c.lines.Text())
	}
	return c, nil
}

// try sends a line and returns the answer.
func (c *control) try(line string) (a testserver.Answer) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
	if !c.lines.Scan() {
		c.t.Fatalf("%s: no answer", line)
	}
	testclient.Must(c.t, json.Unmarshal(c.lines.Bytes(), &a))
	return a
}

// do is try for a command that succeeds.
func (c *control) do(line string) testserver.Answer {
	c.t.Helper()
	a := c.try(line)
	if !a.OK {
		c.t.Fatalf("%s: %s", line, a.Error)
	}
	return a
}

func TestServerObeysLines(t *testing.T) {
	c := startServer(t)
	client := testclient.Connect(t, c.ready.Connect)
	session := output.Session(client.SessionID())
	// A first try that took too long has left a session, and perhaps its connection for a while.
	if got := c.do("state"); len(got.Servers) != 1 || !got.Servers[0].Leads || !slices.Contains(got.Sessions, session) {
		t.Errorf("state: %+v", got)
	}
	testenv.Eventually(t, func() bool { return c.do("state").Servers[0].Connections == 1 }, "one connection")

	// The reply to a create is lost: the client finds the node, and there is one.
	id := c.do("lose-reply op=create,create2 path=/p/**").ID
	_, err := client.Create().CreatingParentsIfNeeded().WithProtection().WithMode(builders.EphemeralSequential).
		ForPath(t.Context(), "/p/n-", nil)
	testclient.Must(t, err)
	children, err := client.GetChildren().ForPath(t.Context(), "/p")
	testclient.Must(t, err)
	if len(children) != 1 {
		t.Errorf("children %v", children)
	}
	if got := c.do(fmt.Sprintf("hits id=%d", id)); got.Hits == nil || *got.Hits != 1 {
		t.Errorf("hits: %+v", got)
	}
	c.do(fmt.Sprintf(`{"do":"remove","id":%d}`, id))

	c.do("fail error=NOAUTH op=delete count=0")
	if err := client.Delete().ForPath(t.Context(), "/p/"+children[0]); Code(err) != CodeRefused {
		t.Errorf("a refused delete: %v", err)
	}
	c.do("heal")
	c.do("expire session=" + session)
	if s, err := client.CheckExists().ForPath(t.Context(), "/p/"+children[0]); s != nil || err != nil {
		t.Errorf("after the end of the session: %v, %v", s, err)
	}
	if got := c.do("cut"); got.Count == nil || *got.Count > 1 {
		t.Errorf("cut: %+v", got)
	}
	_, err = client.GetChildren().ForPath(t.Context(), "/p")
	testclient.Must(t, err)
}

func TestServerAdvancesItsClock(t *testing.T) {
	c := startServer(t)
	client := testclient.Connect(t, c.ready.Connect)
	_, err := client.Create().WithMode(builders.Ephemeral).ForPath(t.Context(), "/e", nil)
	testclient.Must(t, err)
	owner := client.SessionID()
	c.do("freeze")
	c.do("thaw")
	c.do("advance by=1h")
	_, err = client.GetChildren().ForPath(t.Context(), "/")
	testclient.Must(t, err)
	for _, id := range c.do("state").Sessions {
		if id == output.Session(owner) {
			t.Error("the session lives on")
		}
	}
}

func TestServersPart(t *testing.T) {
	c := startServer(t, "--servers", "3")
	if len(c.ready.Servers) != 3 {
		t.Fatalf("%+v", c.ready)
	}
	leader := func() (n int) {
		for _, s := range c.do("state").Servers {
			if s.Leads {
				n = s.Server
			}
		}
		return n
	}
	before := leader()
	others := strings.Trim(strings.ReplaceAll("1,2,3", fmt.Sprint(before), ""), ",")
	others = strings.ReplaceAll(others, ",,", ",")
	c.do("partition groups=" + others)
	if got := leader(); got == before || got == 0 {
		t.Errorf("server %d leads, as before the partition", got)
	}
	client := testclient.Connect(t, c.ready.Connect) // reaches the majority
	_, err := client.Create().ForPath(t.Context(), "/n", nil)
	testclient.Must(t, err)
	c.do("heal")
	c.do(fmt.Sprintf("stop server=%d", before))
	c.do(fmt.Sprintf("start server=%d", before))
	c.do("lag server=2 by=1h")
	c.do("blackhole server=1 direction=to-client")
	c.do("heal")
	_, err = client.GetData().ForPath(t.Context(), "/n")
	testclient.Must(t, err)
}

func TestServerRefusesWhatIsWrong(t *testing.T) {
	c := startServer(t)
	for line, want := range map[string]string{
		"explode":                  "there are advance, blackhole",
		"expire":                   "session=",
		"expire session=0x1":       "expired",
		"expire sesion=0x1":        `no argument "sesion"`,
		"expire 0x1":               "name=value",
		"cut server=2":             "from 1 to 1",
		"partition groups=1":       "--servers 3",
		"lag server=1 by=1s":       "--servers 3",
		"delay op=create":          "by=",
		"fail op=create":           "NOAUTH",
		"lose-reply op=nonsense":   "nonsense",
		"lose-reply path=[":        "[",
		"hits id=9":                "no such rule",
		"advance by=-1s":           "back",
		"blackhole direction=down": "to-server",
		"{":                        "JSON",
	} {
		if got := c.try(line); got.OK || !strings.Contains(got.Error, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
	for _, args := range []string{"--servers 0", "--zookeeper 2.0", "--port x", "now"} {
		got := invoke(t.Context(), append([]string{"server"}, strings.Fields(args)...))
		if got.code != CodeUsage {
			t.Errorf("server %s: %+v", args, got)
		}
	}
}

func TestServerObeysHTTP(t *testing.T) {
	c := startServer(t, "--http", "127.0.0.1:0")
	client := testclient.Connect(t, c.ready.Connect)
	session := output.Session(client.SessionID())
	defer http.DefaultClient.CloseIdleConnections()
	for _, test := range []struct {
		method, path, form, origin string
		status                     int
	}{
		{http.MethodGet, "/state", "", "", http.StatusOK},
		{http.MethodPost, "/cut?session=" + session, "", "", http.StatusOK},
		{http.MethodPost, "/lose-reply", "op=create&count=2", "", http.StatusOK},
		{http.MethodGet, "/hits?id=1", "", "", http.StatusOK},
		{http.MethodPost, "/expire", "session=" + session, "", http.StatusOK},
		{http.MethodPost, "/expire", "session=" + session, "", http.StatusBadRequest},
		{http.MethodPost, "/explode", "", "", http.StatusNotFound},
		{http.MethodGet, "/cut", "", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/cut", "", "http://example.com", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, c.ready.HTTP+test.path, strings.NewReader(test.form))
		testclient.Must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		response, err := http.DefaultClient.Do(r)
		testclient.Must(t, err)
		var a testserver.Answer
		testclient.Must(t, json.NewDecoder(response.Body).Decode(&a))
		testclient.Must(t, response.Body.Close())
		if response.StatusCode != test.status || a.OK != (test.status == http.StatusOK) {
			t.Errorf("%s %s %s: %d %+v, want %d", test.method, test.path, test.form, response.StatusCode, a, test.status)
		}
	}
}

func TestServerHasFixedPorts(t *testing.T) {
	for range 20 { // another process may take a port meanwhile
		l, err := net.Listen("tcp", "127.0.0.1:0")
		testclient.Must(t, err)
		port := l.Addr().(*net.TCPAddr).Port
		testclient.Must(t, l.Close())
		c, err := tryServer(t, "--port", fmt.Sprint(port), "--servers", "2")
		if err != nil {
			t.Log(err)
			continue
		}
		if want := fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", port, port+1); c.ready.Connect != want {
			t.Errorf("connect string %s, want %s", c.ready.Connect, want)
		}
		return
	}
	t.Error("no port was free")
}

func TestServerEndsWithItsInput(t *testing.T) {
	for _, ends := range []bool{true, false} {
		args := []string{}
		if ends {
			args = append(args, "--end-with-stdin")
		}
		c := startServer(t, args...)
		testclient.Must(t, c.in.Close())
		if ends {
			if got := <-c.done; got != CodeOK {
				t.Errorf("code %d", got)
			}
			continue
		}
		testclient.Connect(t, c.ready.Connect) // it is still there
	}
}

func TestServerHasUsers(t *testing.T) {
	c := startServer(t, "--sasl-users", "alice=wonder")
	got := invoke(t.Context(), []string{"ls", "/", "--sasl-user", "alice"},
		"CURATOR_CONNECT="+c.ready.Connect, "CURATOR_SASL_PASSWORD=wonder")
	if got.code != CodeOK {
		t.Errorf("ls: %+v", got)
	}
}

// kazooProgram uses a client of Python.
const kazooProgram = `
import sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1])
client.start()
with client.Lock("/kazoo/lock", "me") as lock:
    client.create("/kazoo/node", b"data")
    print("locked", len(client.get_children("/kazoo/lock")), client.get("/kazoo/node")[0])
client.stop()
`

// TestServerCarriesOtherClients lets Java Curator, kazoo and the command line of Apache ZooKeeper use the server.
func TestServerCarriesOtherClients(t *testing.T) {
	testenv.RequireReal(t) // of Java
	c := startServer(t)
	ctx := testenv.Context(t)
	peer, err := interop.Start(ctx, interop.Curator)
	testclient.Must(t, err)
	t.Cleanup(func() { testclient.Must(t, peer.Close()) })
	call := func(cmd string, args interop.Args, out any) {
		t.Helper()
		if err := peer.Call(ctx, cmd, args, out); err != nil {
			t.Fatal(err)
		}
	}
	var session int64
	call("start", interop.Args{"connect": c.ready.Connect, "sessionTimeoutMs": 20_000}, &session)
	call("mutexNew", interop.Args{"name": "m", "path": "/mutex"}, nil)
	call("mutexAcquire", interop.Args{"name": "m", "timeoutMs": 20_000}, nil)
	got := invoke(ctx, []string{"holders", "/mutex", "-o", "json"}, "CURATOR_CONNECT="+c.ready.Connect)
	var h holder
	testclient.Must(t, json.Unmarshal([]byte(got.stdout), &h))
	if h.State != "holds" || h.Session != output.Session(session) {
		t.Errorf("holders of Java's mutex: %+v", h)
	}
	c.do("expire session=" + h.Session)
	got = invoke(ctx, []string{"holders", "/", "-o", "json"}, "CURATOR_CONNECT="+c.ready.Connect)
	if got.stdout != "" || got.code != CodeOK {
		t.Errorf("holders after the end of the session: %+v", got)
	}

	kazoo := exec.CommandContext(ctx, "/usr/bin/python3", "-c", kazooProgram, c.ready.Connect)
	if text, err := kazoo.CombinedOutput(); err != nil || string(text) != "locked 1 b'data'\n" {
		t.Errorf("kazoo: %v\n%s", err, text)
	}

	classPath, err := interop.ClassPath()
	testclient.Must(t, err)
	cli := exec.CommandContext(ctx, "java", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jline.disable=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classPath,
		"org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", "-server", c.ready.Connect)
	cli.Stdin = strings.NewReader("create /cli word\nget /cli\nquit\n")
	text, err := cli.CombinedOutput()
	if err != nil || !strings.Contains(string(text), "\nword\n") {
		t.Errorf("zkCli: %v\n%s", err, text)
	}
}
