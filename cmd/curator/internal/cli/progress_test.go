package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// TestProgressOfLongWorkAlone has work of several lengths, on a terminal and into a file.
func TestProgressOfLongWorkAlone(t *testing.T) {
	for _, test := range []struct {
		terminal bool
		seconds  int
		want     string
	}{
		{false, 0, ""},
		{true, 0, ""},
		{false, 2, "curator: deleted 2 of 99\n"},
		{true, 1, strings.Repeat("\r\x1b[Kcurator: deleted 2 of 99", 5) + "\r\x1b[K"},
		{false, 30, "curator: deleted 2 of 99\ncurator: deleted 12 of 99\ncurator: deleted 22 of 99\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := (&app{Env: Env{Stderr: &out}}).progress(func(done int64) string {
				return fmt.Sprintf("deleted %d of 99", done)
			}, test.terminal)
			p.add(1)
			time.Sleep(time.Second - time.Millisecond)
			for range test.seconds {
				p.add(1)
				time.Sleep(time.Second)
			}
			p.stop()
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("terminal %v, %d s (-want +got):\n%s", test.terminal, test.seconds, diff)
			}
		})
	}
}

// said is a standard error that a test reads while the program runs.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestLongChangesShowTheirProgress holds a request of each until there is a line.
func TestLongChangesShowTheirProgress(t *testing.T) {
	for args, test := range map[string]struct{ op, path, want string }{
		"rm -r /t": {"delete", "/t/3", `deleted \d+ of 11 nodes at and below /t`},
		"chmod -R world:anyone:cdrwa /t": {
			"setACL", "/t/3", `set the permissions of \d+ of 11 nodes at and below /t`,
		},
		"rm -r --dry-run /t":           {"exists", "/t/3", `read \d+ nodes at and below /t`},
		"queue requeue /dead /q --all": {"multi", "/dead/queue-0000000003", `done with 0 of 4 letters of /dead`},
	} {
		server := curatortest.NewServerT(t)
		client := testclient.Connect(t, server.ConnectString())
		bury(t, client, 4)
		tenNodes(t, client)
		hold := server.Faults().Add(curatortest.Rule{
			Ops: []string{test.op}, Path: test.path, Action: curatortest.HoldReply, Count: 1,
		})
		testclient.Must(t, hold.Err())
		var stderr said
		env := environment([]string{"CURATOR_CONNECT=" + server.ConnectString()})
		env.Args, env.Stdin, env.Stdout, env.Stderr = strings.Fields(args), strings.NewReader(""), &said{}, &stderr
		done := make(chan int, 1)
		go func() { done <- Main(t.Context(), env) }()
		testclient.Must(t, hold.Wait(testenv.Context(t)))
		want := regexp.MustCompile("^curator: " + test.want + "\n$")
		testenv.Eventually(t, func() bool { return want.MatchString(stderr.String()) }, args+" says "+test.want)
		hold.Release()
		if code := <-done; code != CodeOK || !want.MatchString(stderr.String()) {
			t.Errorf("%s: code %d, %q", args, code, stderr.String())
		}
	}
}

// tenNodes makes a tree of eleven nodes at /t.
func tenNodes(t *testing.T, client *framework.Client) {
	t.Helper()
	ops := []builders.TransactionOperation{client.TransactionOp().Create().ForPath("/t", nil)}
	for i := range 10 {
		ops = append(ops, client.TransactionOp().Create().ForPath(fmt.Sprintf("/t/%d", i), nil))
	}
	_, err := client.Transaction().ForOperations(testenv.Context(t), ops...)
	testclient.Must(t, err)
}
