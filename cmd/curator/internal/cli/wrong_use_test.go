package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// TestWrongUseHasACodeOfItsOwn has flags whose values make no sense, and files that are none. No server is asked.
func TestWrongUseHasACodeOfItsOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"garbage": "garbage", "jaas": "Client {"} {
		testclient.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	known := strings.Join(recognize.Recipes(), ", ")
	for _, test := range []struct{ args, stderr string }{
		{"ls / --tls-ca none", "none: no such file"},
		{"ls / --tls-ca garbage", "garbage: no certificate"},
		{"ls / --tls-cert none --tls-key none", "none: no such file"},
		{"ls / --tls-cert garbage --tls-key garbage", "garbage"},
		{"ls / --tls-cert garbage", "need each other"},
		{"ls / --tls-crl none", "none: no such file"},
		{"ls / --jaas none", "none: no such file"},
		{"ls / --jaas jaas", "jaas"},
		{"ls / --sasl-user alice --sasl-password-file none", "none: no such file"},
		{"lock --tls-ca none /l -- true", "none: no such file"},
		{"elect --tls-ca none --http 127.0.0.1:0 /l", "none: no such file"},
		{"ls / --session-timeout 0", "session timeout"},
		{"ls / --session-timeout -5s", "session timeout"},
		{"ls / --connect-timeout 0", "--connect-timeout"},
		{"ls / --connect-timeout -1s", "--connect-timeout"},
		{"ls / --connect 127.0.0.1:70000", "70000"},
		{"server --port 70000", "--port"},
		{"server --port -1", "--port"},
		{"server --port 65535 --servers 2", "--port"},
		{"server --tick 0", "--tick"},
		{"server --http 127.0.0.1:70000", "--http"},
		{"server --http here", "--http"},
		{"demo --port 70000", "--port"},
		{"demo --for -1s", "--for"},
		{"elect --http 127.0.0.1:70000 /l", "--http"},
		{"elect --http here /l", "--http"},
		{"semaphore -n 0 /s -- true", "--permits"},
		{"queue ls /q -n -1", "--count"},
		{"queue peek /q -n -1", "--count"},
		{"watch /x -n -1", "--count"},
		{"tree / -L -2", "--depth"},
		{"find / --older -1h", "--older"},
		{"find / --newer -1h", "--newer"},
		{"set /x y --version -2", "--version"},
		{"rm /x --version -2", "--version"},
		{"holders / --recipe mutex", `"mutex" is none of ` + known},
		{"holders / --recipe latch,Lock", `"Lock" is none of ` + known},
		{"holders / --follow --recipe mutex", `"mutex" is none of ` + known},
	} {
		// The later of two flags counts, so that a test may have servers of its own.
		args := append([]string{"--connect", "127.0.0.1:1", "--connect-timeout", "50ms"}, strings.Fields(test.args)...)
		got := invoke(t.Context(), args)
		if got.code != CodeUsage || got.stdout != "" || !strings.Contains(got.stderr, test.stderr) ||
			strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %+v, want code %d and %q", test.args, got, CodeUsage, test.stderr)
		}
	}
}

// TestEmptyFlagIsNoFlagLeftOut has flags as a script gives them whose variables are not set: without the flag, the
// program would use other servers, delete more nodes, or move what a consumer holds.
func TestEmptyFlagIsNoFlagLeftOut(t *testing.T) {
	environ, connect := connected(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	testclient.Must(t, os.WriteFile(config, []byte("current: x\ncontexts:\n  x:\n    connect: "+connect+"\n"), 0o600))
	environ = append(environ, "CURATOR_CONFIG="+config)
	for _, args := range []string{
		"ls / --connect=", "ls / --context=", "ls / --config=", "ls / --tls-ca=", "ls / --tls-cert= --tls-key=",
		"ls / --tls-server-name=", "ls / --tls-crl=", "ls / --sasl-user=", "ls / --sasl-password-file=", "ls / --jaas=",
		"ls / --jaas-section=", "ls / --auth=", "lock --connect= /l -- true", "elect --connect= --http 127.0.0.1:0 /l",
		"find / --name=", "find / --data=", "find / --kind=", "find / --owner=", "holders / --recipe=",
		"queue requeue /dead /q --all --locks=", "elect --id= /l -- true", "elect --http= /l -- true",
		"server --http=", "server --host=", "server --zookeeper=", "server --sasl-users=", "put /x y --fence=",
	} {
		got := invoke(t.Context(), strings.Fields(args), environ...)
		if got.code != CodeUsage || got.stdout != "" || !strings.Contains(got.stderr, "--") ||
			strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %+v, want code %d", args, got, CodeUsage)
		}
	}
}

func TestNonEmptyRefusesEmptyData(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	_, err := client.Create().ForPath(t.Context(), "/x", []byte("before"))
	testclient.Must(t, err)
	for _, args := range []string{"put /x", "set /x", "create /y", "put /z"} {
		got := invokeWith(t.Context(), "", append(strings.Fields(args), "--non-empty"), environ...)
		if got.code != CodeRefused || got.stdout != "" || !strings.Contains(got.stderr, "the data is empty") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := invoke(t.Context(), []string{"put", "--non-empty", "/x", ""}, environ...); got.code != CodeRefused {
		t.Errorf("an argument: %+v", got)
	}
	if names := children(t, client, "/"); contains(names, "y", "z") {
		t.Errorf("nodes: %q", names)
	}
	expect(t, environ, "get /x", "before")
	if got := invokeWith(t.Context(), "after", []string{"put", "--non-empty", "/x"}, environ...); got.code != CodeOK {
		t.Errorf("with data: %+v", got)
	}
	expect(t, environ, "get /x", "after")
	if got := invokeWith(t.Context(), "", []string{"put", "/x"}, environ...); got.code != CodeOK {
		t.Errorf("without the flag: %+v", got)
	}
	expect(t, environ, "get /x", "")
}

// contains reports whether some of the names are among others.
func contains(names []string, some ...string) bool {
	for _, name := range names {
		for _, s := range some {
			if name == s {
				return true
			}
		}
	}
	return false
}
