package cli

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"

	"github.com/gocurator/curator/cmd/curator/internal/guard"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// asProgram makes the program of a test binary: guards and commands inherit it.
const asProgram = "CURATOR_TEST_PROGRAM=1"

// testGuards has the guards of tests, which CURATOR_TEST_GUARD names. One that returns goes on as that of the program.
var testGuards map[string]func()

func TestMain(m *testing.M) {
	if os.Getenv("CURATOR_TEST_PROGRAM") == "1" {
		if os.Getenv("CURATOR_TEST_IGNORE") == "1" { // as its parent does
			signal.Ignore(forwarded...)
		}
		if fn := testGuards[os.Getenv("CURATOR_TEST_GUARD")]; fn != nil && os.Args[1] == guard.Subcommand {
			fn()
		}
		os.Exit(Main(context.Background(), System()))
	}
	testenv.Main(m)
}

// result is what a run of the program has left.
type result struct {
	code           int
	stdout, stderr string
}

// invoke runs the program with arguments and an environment of KEY=value, and nothing on its standard input.
func invoke(ctx context.Context, args []string, environ ...string) result {
	var stdout, stderr bytes.Buffer
	code := Main(ctx, Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(key string) string {
			for _, e := range environ {
				if k, v, _ := strings.Cut(e, "="); k == key {
					return v
				}
			}
			return ""
		},
	})
	return result{code, stdout.String(), stderr.String()}
}

// connected returns the environment with a part of the test's tree for itself, and its connect string.
func connected(t *testing.T) (environ []string, connect string) {
	t.Helper()
	connect = testenv.ConnectString(t)
	return []string{"CURATOR_CONNECT=" + connect}, connect
}

// expireOthers ends the sessions that a server has beside some.
func expireOthers(t *testing.T, server *curatortest.Server, sessions []int64) {
	t.Helper()
	for _, id := range server.Sessions() {
		if !slices.Contains(sessions, id) {
			testclient.Must(t, server.ExpireSession(id))
		}
	}
}
