package queue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// consumerVariable has the server of the process of a consumer.
const consumerVariable = "QUEUE_TEST_CONSUMER_CONNECT"

// account is what the process of a consumer prints of its spans.
type account struct {
	Tree          string
	Traces        []string // of each span that is not of a connection
	Causes        []string // the parents of what was processed
	Tries, States []string // the events of the setData
}

// TestTraceOfAPutGoesOnInAnotherProcess has the consumer be one, which goes on in the background, and compares what it
// reports its spans with those of the producer. The worst is an item that is put back once, and a connection that is
// lost, with a callback's request, twice.
func TestTraceOfAPutGoesOnInAnotherProcess(t *testing.T) {
	if connect := os.Getenv(consumerVariable); connect != "" {
		consumeElsewhere(t, connect)
		return
	}
	t.Parallel()
	retry := func(n int) string {
		return fmt.Sprintf("curator.retry.attempt=%d,curator.retry.delay=0.02,error.type=CONNECTIONLOSS", n)
	}
	const suspended, reconnected = "curator.connection.state=suspended", "curator.connection.state=reconnected"
	tests := map[string]struct {
		item string
		cuts int
		want account
	}{
		"at once": {item: "a", want: account{Tree: `
curator.connect
process orders CONSUMER -> ?
  create CLIENT
    setData CLIENT
      getData CLIENT
        last callback
  settle orders CLIENT
    multi delete CLIENT
`}},
		"after a requeue, a reconnect and two retries": {item: refusedOnce, cuts: 2, want: account{Tree: `
curator.connect
process orders CONSUMER curator.outcome=requeued error=_OTHER -> ?
  settle orders CLIENT
    multi CLIENT
process orders CONSUMER -> ?
  create CLIENT
    setData CLIENT curator.retry.count=2
      getData CLIENT
        last callback
  settle orders CLIENT
    multi delete CLIENT
curator.connection.outage curator.outcome=reconnected
curator.connection.outage curator.outcome=reconnected
`, Tries: []string{retry(1), retry(2)}, States: []string{suspended, reconnected, suspended, reconnected}}},
	}
	top := t.Name()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, propagated)
			r.put(tt.item)
			if tt.cuts > 0 {
				r.proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: tt.cuts, Action: curatortest.CutBefore})
			}
			got := r.awaitProcess(top)
			send := r.awaitSpans("send orders", 1)[0].SpanContext()
			want := tt.want
			want.Tree = strings.TrimLeft(want.Tree, "\n")
			for line := range strings.Lines(want.Tree) {
				if !strings.HasPrefix(line, "curator.conn") {
					want.Traces = append(want.Traces, send.TraceID().String())
				}
				if strings.HasPrefix(line, "process ") {
					want.Causes = append(want.Causes, send.SpanID().String())
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the process of the consumer (-want +got):\n%s", diff)
			}
			r.wantOneTrace()
		})
	}
}

// awaitProcess runs a consumer, behind the proxy, as a process of its own.
func (r *relay) awaitProcess(test string) (got account) {
	r.t.Helper()
	_, chroot, _ := strings.Cut(r.direct, "/")
	cmd := exec.CommandContext(testenv.Context(r.t), os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), consumerVariable+"="+r.proxy.Addr()+"/"+chroot)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(line, &got); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	return got
}

// refusedOnce is an item that is put back the first time.
const refusedOnce = "refused"

// consumeElsewhere consumes one item, and prints the account of it in a line.
func consumeElsewhere(t *testing.T, connect string) {
	t.Helper()
	o := observe.New(t)
	client := newClient(t, connect, framework.WithSessionTimeout(30*time.Second), framework.WithTracerProvider(o.Tracers),
		propagated)
	c := newChain(client)
	var once sync.Once
	ended := make(chan context.Context, 1)
	b := builder(t, client, func(ctx context.Context, item string) (err error) {
		once.Do(func() {
			if item == refusedOnce {
				err = errors.New("not now")
			}
		})
		if err == nil {
			err = c.consume(ctx, item)
		}
		if err == nil {
			ended <- <-c.ended // so that nothing but the chain meets the outage
		}
		return err
	})
	q := start(t, built(b.LockPath(lockPath).Name("orders").OnError(func(context.Context, error) {}).BuildQueue()))
	select {
	case ctx := <-ended:
		_, last := o.Start(ctx, "last callback")
		last.End()
	case <-testenv.Context(t).Done():
		t.Fatal("the last callback is not called")
	}
	must(t, q.Close())
	must(t, client.Close()) // everything is reported
	got := account{Tree: o.Tree("curator.outcome", "curator.retry.count")}
	for _, s := range o.Spans() {
		if !strings.HasPrefix(s.Name(), "curator.conn") {
			got.Traces = append(got.Traces, s.SpanContext().TraceID().String())
		}
		if s.Name() == "process orders" {
			got.Causes = append(got.Causes, s.Parent().SpanID().String())
		}
	}
	set := o.Named("setData")[0]
	got.Tries, got.States = observe.Events(set, "curator.retry"), observe.Events(set, "curator.connection.state")
	must(t, json.NewEncoder(os.Stdout).Encode(got))
}
