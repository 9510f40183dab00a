package cli

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
)

func TestFencedWritesEndWithTheLock(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	hold, err := locks.NewInterProcessMutex(client, "/lock").Acquire(t.Context())
	testclient.Must(t, err)
	fenced := append(environ, "CURATOR_LOCK_PATH="+hold.Path())
	run := func(environ []string, line string, code int, stdout string) {
		t.Helper()
		got := invoke(t.Context(), strings.Fields(line), environ...)
		if got.code != code || got.stdout != stdout {
			t.Errorf("%s: %+v, want code %d and %q", line, got, code, stdout)
		}
	}
	run(environ, "put /a/b unfenced", CodeOK, "")
	run(environ, "put --fence /a/b x", CodeUsage, "")
	run(environ, "put --fence="+hold.Path()+" /a/b named", CodeOK, "")
	run(environ, "get /a/b", CodeOK, "named")
	run(fenced, "put --fence /a/b 1", CodeOK, "")
	run(fenced, "put --fence /c/d new", CodeOK, "")
	run(fenced, "get /c/d", CodeOK, "new")
	run(fenced, "set --fence /a/b 2", CodeOK, "")
	run(fenced, "create --fence /a/e 3", CodeOK, "/a/e\n")
	run(fenced, "create --fence /a/e 3", CodeFailed, "")
	run(fenced, "create --fence -p --sequential /q/n- 4", CodeOK, "/q/n-0000000000\n")
	run(fenced, "delete --fence /a/e", CodeOK, "")
	run(fenced, "set --fence /none 2", CodeNoNode, "") // not that of the lock
	testclient.Must(t, hold.Release(t.Context()))
	run(fenced, "put --fence /a/b late", CodeLost, "")
	run(fenced, "put --fence /new/node late", CodeLost, "")
	run(fenced, "set --fence /a/b late", CodeLost, "")
	run(fenced, "create --fence /a/f late", CodeLost, "")
	run(fenced, "rm --fence /a/b", CodeLost, "")
	run(fenced, "rm -r --fence /a", CodeLost, "")
	run(fenced, "get /a/b", CodeOK, "2")
	run(fenced, "get /new", CodeNoNode, "") // nor the parents
}

// TestFencedWriteThatMayHaveTakenEffectIsNotLost loses the answer to a write, and the lock before its second try.
func TestFencedWriteThatMayHaveTakenEffectIsNotLost(t *testing.T) {
	chroot := testenv.Chroot(t)
	proxy, connect := testclient.Proxy(t, chroot)
	client := testclient.Connect(t, testenv.Addr(t)+chroot)
	hold, err := locks.NewInterProcessMutex(client, "/lock").Acquire(t.Context())
	testclient.Must(t, err)
	_, err = client.Create().ForPath(t.Context(), "/report", []byte("before"))
	testclient.Must(t, err)
	answer := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.HoldReply, Count: 1})
	testclient.Must(t, answer.Err())
	done := make(chan result, 1)
	go func() {
		args := []string{"set", "--fence=" + hold.Path(), "/report", "after", "--connect", connect}
		done <- invoke(t.Context(), args)
	}()
	testclient.Must(t, answer.Wait(testenv.Context(t)))
	testclient.Must(t, hold.Release(t.Context()))
	proxy.Faults().CutAll()
	answer.Release()
	if got := <-done; got.code != CodeFailed || !strings.Contains(got.stderr, "may have taken effect") {
		t.Errorf("got %+v, want code %d", got, CodeFailed)
	}
	data, err := client.GetData().ForPath(t.Context(), "/report")
	if err != nil || string(data) != "after" {
		t.Errorf("the node has %q %v", data, err)
	}
}

// TestFenceOfNoLockIsWrongUse has fences that would hold nothing back: each is an error before anything is written.
func TestFenceOfNoLockIsWrongUse(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	hold, err := locks.NewInterProcessMutex(client, "/lock").Acquire(t.Context())
	testclient.Must(t, err)
	defer hold.Release(testenv.Context(t)) //nolint:errcheck // it is the end
	_, err = client.Create().ForPath(t.Context(), "/report", []byte("before"))
	testclient.Must(t, err)
	node := hold.Path()
	for _, args := range [][]string{
		{"put", "--fence=", "/report", "late"}, // as of a variable that is not set
		{"set", "--fence=", "/report", "late"},
		{"create", "--fence=", "/new", "late"},
		{"rm", "--fence=", "/report"},
		{"put", "--fence=/", "/report", "late"}, // which is there for ever
		{"put", "--fence=/lock", "/report", "late"},
		{"rm", "-r", "--fence=/lock", "/report"},
		{"put", "--fence=lock", "/report", "late"},
		{"put", "--fence", node, "/report"}, // a flag without =: the node is PATH, and "/report" is DATA
		{"set", "--fence", node, "/report"},
		{"rm", "--fence", node, "/report"},
		{"rm", "-r", "--fence", "/lock", "/report"},
	} {
		got := invoke(t.Context(), args, append(environ, "CURATOR_LOCK_PATH="+node)...)
		if got.code != CodeUsage || !strings.Contains(got.stderr, "fence") {
			t.Errorf("%v: %+v, want code %d", args, got, CodeUsage)
		}
	}
	if got := invoke(t.Context(), []string{"get", "/report"}, environ...); got.stdout != "before" {
		t.Errorf("written: %+v", got)
	}
	if nodes, err := locks.NewInterProcessMutex(client, "/lock").ParticipantNodes(t.Context()); err != nil ||
		len(nodes) != 1 {
		t.Errorf("the lock has %v %v", nodes, err)
	}
	data, err := client.GetData().ForPath(t.Context(), node)
	if err != nil || string(data) == "/report" {
		t.Errorf("the node of the lock has %q %v", data, err)
	}
}
