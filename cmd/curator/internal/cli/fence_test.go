package cli

import (
	"strings"
	"testing"

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
