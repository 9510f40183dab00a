package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/sasl/digest"
)

// outage is a server in memory and a client that logs, in virtual time.
type outage struct {
	*testing.T
	server  *curatortest.Server
	client  *framework.Client
	lines   lines
	awaited int      // bytes of the lines up to the last one that was awaited
	errs    []string // what operations have returned: if there are any, the block has these alone
}

// outages play what the sections of outages.md are about. The block of a section has the lines that the client logs
// from the call on.
var outages = map[string]func(o *outage){
	"A server restarts": func(o *outage) {
		o.connect()
		o.must(o.server.Stop())
		time.Sleep(2 * time.Second)
		o.must(o.server.Restart())
		o.await(framework.Reconnected)
	},
	"All servers are away for longer than the session timeout": func(o *outage) {
		o.connect()
		o.must(o.server.Stop())
		o.await(framework.Lost)
		o.must(o.server.Restart())
		o.await(framework.Reconnected)
	},
	"A server or the network is silent": func(o *outage) {
		o.connect()
		restore := o.server.Faults().BlackHole(curatortest.Both)
		o.await(framework.Suspended)
		time.Sleep(3 * time.Second)
		restore()
		o.await(framework.Reconnected)
	},
	"The servers have ended the session": func(o *outage) {
		o.connect()
		o.must(o.server.ExpireSession(o.client.SessionID()))
		o.await(framework.Reconnected)
	},
	"The server has lost its majority": func(o *outage) {
		o.connect()
		hold, err := locks.NewInterProcessMutex(o.client, "/lock").Acquire(o.Context())
		o.must(err)
		o.server.Faults().Add(curatortest.Rule{Ops: []string{"heartbeat"}, Action: curatortest.DropReply})
		refuse := o.server.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.CutBefore})
		o.await(framework.Lost)
		<-hold.Context().Done()
		refuse.Remove()
		o.await(framework.Reconnected)
	},
	"A server answers pings, and a request not": func(o *outage) {
		o.connect()
		o.server.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.DropReply})
		_, err := o.client.GetData().ForPath(o.Context(), "/")
		o.must(err)
		synctest.Wait()
	},
	"The ensemble is restored from a backup": func(o *outage) {
		o.connect()
		backup := o.server.Snapshot()
		_, err := o.client.Create().ForPath(o.Context(), "/a", nil)
		o.must(err)
		o.server.Restore(backup)
		o.await(framework.Reconnected)
	},
	"No server is there at the start": func(o *outage) {
		o.must(o.server.Stop())
		o.must(o.client.Start())
		o.await(framework.Lost)
		o.must(o.server.Restart())
		o.await(framework.Connected)
	},
	"The credentials are wrong": func(o *outage) {
		o.newClient(framework.WithAuth("kerberos", nil))
		o.must(o.client.Start())
		o.await(framework.Lost)
	},
	"The login is refused": func(o *outage) {
		o.newClient(framework.WithSASL(digest.New("bob", "secret")))
		o.must(o.client.Start())
		o.await(framework.Lost)
	},
	"The program gives the session up": func(o *outage) {
		o.connect()
		o.must(o.client.Reset())
		o.await(framework.Reconnected)
	},
	"What operations return": func(o *outage) {
		read := func(ctx context.Context) error { _, err := o.client.GetData().ForPath(ctx, "/a"); return err }
		write := func(ctx context.Context) error { _, err := o.client.Create().ForPath(ctx, "/b", nil); return err }
		o.newClient(framework.WithRetryPolicy(retry.NTimes(1, time.Second)), framework.WithConnectionTimeout(5*time.Second))
		o.connect()
		held := o.server.Faults().Add(curatortest.Rule{Ops: []string{"getData", "create2"}, Action: curatortest.HoldRequest})
		o.within(read)
		o.within(write)
		held.Release()
		o.must(o.server.Stop())
		o.await(framework.Suspended)
		o.within(write)
		o.note(write(o.Context()))
		o.must(o.server.Restart())
		o.await(framework.Reconnected)
		o.server.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.CutBefore})
		_, err := o.client.SetData().ForPath(o.Context(), "/b", nil)
		o.note(err)
	},
	"Background operations are given up": func(o *outage) {
		o.newClient(framework.WithRetryPolicy(retry.NTimes(0, time.Second)))
		o.connect()
		held := o.server.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply})
		defer held.Release()
		got := make(chan error)
		note := func(_ context.Context, ev callbacks.Event) { got <- ev.Err }
		o.must(o.client.GetData().InBackground(note).ForPath(o.Context(), "/a"))
		o.must(o.client.GetData().InBackground(nil).ForPath(o.Context(), "/b"))
		synctest.Wait() // both are sent
		o.server.Faults().CutAll()
		if err := <-got; !errors.Is(err, framework.ErrConnectionLoss) {
			o.Errorf("the callback got %v", err)
		}
		o.await(framework.Reconnected)
	},
}

// within calls an operation with a context that ends soon, and notes its error.
func (o *outage) within(call func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(o.Context(), 2*time.Second)
	defer cancel()
	o.note(call(ctx))
}

func (o *outage) note(err error) {
	o.Helper()
	if err == nil {
		o.Fatal("no error")
	}
	o.errs = append(o.errs, err.Error()+"\n")
}

func (o *outage) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// newClient makes the client anew. A program has the default level of slog, and so has the page.
func (o *outage) newClient(opts ...framework.Option) {
	o.Helper()
	handler := slog.NewTextHandler(&o.lines, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	client, err := framework.New(o.server.ConnectString(), append([]framework.Option{
		framework.WithDialer(o.server.DialContext), framework.WithSessionTimeout(30 * time.Second),
		framework.WithLogger(slog.New(handler)),
	}, opts...)...)
	o.must(err)
	o.client = client
}

func (o *outage) connect() {
	o.Helper()
	o.must(o.client.Start())
	o.must(o.client.BlockUntilConnected(o.Context()))
	synctest.Wait()
}

// await waits for the next line of a state, behind that of the last await: it may be there before the call.
func (o *outage) await(want framework.ConnectionState) {
	o.Helper()
	line := "state=" + want.String() + " "
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		log := o.lines.String()
		if at := strings.Index(log[o.awaited:], line); at >= 0 {
			o.awaited += at + len(line)
			break
		}
		if time.Since(began) > time.Hour { // of virtual time
			o.Fatalf("no line %q in:\n%s", line, log[o.awaited:])
		}
	}
	synctest.Wait()
}

// lines is what was logged.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var (
	sessionID = regexp.MustCompile(`0x[0-9a-f]+`)
	// A pause is random in part, and so are the times of pings.
	elapsed = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?m?s\b`)
)

// plain returns lines of a log in the form of the page. Lines of other goroutines than that of the states come last.
func plain(log, addr string) string {
	log = strings.NewReplacer(
		addr, "zk1:2181", "dial memory memory", "dial tcp 10.0.0.1:2181",
		"read memory memory->memory", "read tcp 10.0.0.9:50318->10.0.0.1:2181",
	).Replace(log)
	var first, last strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=ERROR") {
			last.WriteString(line)
		} else {
			first.WriteString(line)
		}
	}
	log = first.String() + last.String()
	seen := map[string]string{}
	return sessionID.ReplaceAllStringFunc(log, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("0x10004d3a5f2%04x", len(seen))
		}
		return seen[id]
	})
}

func TestOutagesHaveTheLinesOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("outages.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		if _, block, found := strings.Cut(text, "```text\n"); found {
			blocks[title], _, _ = strings.Cut(block, "```")
		}
	}
	for title := range blocks {
		if outages[title] == nil {
			t.Errorf("%s: no test plays it", title)
		}
	}
	for title, play := range outages {
		t.Run(title, func(t *testing.T) {
			var log string
			synctest.Test(t, func(t *testing.T) {
				o := &outage{T: t, server: curatortest.NewServerT(t, curatortest.WithoutPort())}
				o.newClient()
				play(o)
				log = o.lines.String()
				if len(o.errs) > 0 {
					log = strings.Join(o.errs, "")
				}
				log = plain(log, o.server.Addr())
				o.must(o.client.Close())
			})
			want, got := elapsed.ReplaceAllString(blocks[title], "…"), elapsed.ReplaceAllString(log, "…")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-page +log)\n%s\nthe log:\n%s", diff, log)
			}
		})
	}
}

// Every reason for the end of a session is explained.
func TestOutagesNameEveryReasonOfALostSession(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("outages.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../framework/connection.go")
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`(?:lose\(|giveUp\(|reason = |return |Sprintf\()"((?:clock|the|only) [^"%]+)`)
	reasons := literal.FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 8 {
		t.Fatalf("%d reasons: %q", len(reasons), reasons)
	}
	for _, reason := range reasons {
		if text := strings.TrimSpace(reason[1]); !strings.Contains(string(page), "`"+text) {
			t.Errorf("outages.md does not explain %q", text)
		}
	}
}
