package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestVersionPrintsInEachFormat(t *testing.T) {
	for format, want := range map[string]string{"table": "VERSION", "json": `{"version":`, "yaml": "version: "} {
		got := invoke(t.Context(), []string{"version", "-o", format})
		if got.code != CodeOK || !strings.HasPrefix(got.stdout, want) {
			t.Errorf("-o %s: %+v, want %q at the beginning", format, got, want)
		}
	}
}

func TestLsPrintsChildrenSorted(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	for _, name := range []string{"/a/z", "/a/b"} {
		_, err := client.Create().CreatingParentsIfNeeded().ForPath(t.Context(), name, []byte("x"))
		testclient.Must(t, err)
	}
	for format, want := range map[string]string{
		"table": "b\nz\n",
		"json":  "{\"name\":\"b\"}\n{\"name\":\"z\"}\n",
		"yaml":  "name: b\n---\nname: z\n",
	} {
		got := invoke(t.Context(), []string{"ls", "/a", "-o", format}, environ...)
		if diff := cmp.Diff(result{stdout: want}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("-o %s (-want +got):\n%s", format, diff)
		}
	}
}

func TestGetPrintsDataByteForByte(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	for name, data := range map[string]string{"/text": "true", "/binary": "\xff\x00\n", "/empty": ""} {
		_, err := client.Create().ForPath(t.Context(), name, []byte(data))
		testclient.Must(t, err)
		if got := invoke(t.Context(), []string{"get", name}, environ...); got.stdout != data || got.code != CodeOK {
			t.Errorf("get %s: %+v, want %q", name, got, data)
		}
	}

	var got struct {
		Path, Data, DataBase64 string
		Stat                   struct{ Bytes int }
	}
	out := invoke(t.Context(), []string{"get", "/binary", "-o", "json"}, environ...)
	testclient.Must(t, json.Unmarshal([]byte(out.stdout), &got))
	if got.Path != "/binary" || got.DataBase64 != "/wAK" || got.Stat.Bytes != 3 {
		t.Errorf("get -o json: %s", out.stdout)
	}
	out = invoke(t.Context(), []string{"get", "/text", "-o", "yaml"}, environ...)
	if !strings.Contains(out.stdout, "\ndata: \"true\"\n") { // a string stays one
		t.Errorf("get -o yaml: %s", out.stdout)
	}
}

func TestExitCodes(t *testing.T) {
	environ, connect := connected(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	testclient.Must(t, os.WriteFile(config, []byte("contexts:\n  here:\n    connect: "+connect+"\n"), 0o600))
	typo := filepath.Join(t.TempDir(), "config.yaml")
	testclient.Must(t, os.WriteFile(typo, []byte("contexts:\n  here:\n    connekt: x\n"), 0o600))
	for _, test := range []struct {
		args    string
		environ []string
		code    int
		stderr  string
	}{
		{args: "ls /", environ: environ},
		{args: "ls / --connect " + connect, environ: []string{"CURATOR_CONNECT=127.0.0.1:1"}},
		{args: "ls / --context here --config " + config},
		{args: "ls /", environ: []string{"CURATOR_CONFIG=" + config, "CURATOR_CONTEXT=here"}},
		{args: "ls / --context there --config " + config, code: CodeUsage, stderr: `no context "there"; it has here`},
		{args: "ls / --context here --config " + typo, code: CodeUsage, stderr: "connekt"},
		{args: "ls / --config /nowhere/config.yaml", code: CodeUsage, stderr: "/nowhere/config.yaml"},
		{args: "ls /", code: CodeUsage, stderr: "no servers"},
		{args: "ls /none", environ: environ, code: CodeNoNode, stderr: "/none"},
		{args: "ls none", environ: environ, code: CodeUsage, stderr: "none"},
		{args: "ls", environ: environ, code: CodeUsage, stderr: "arg"},
		{args: "ls / --what", environ: environ, code: CodeUsage, stderr: "--what"},
		{args: "ls / -o xml", environ: environ, code: CodeUsage, stderr: "table, json, yaml"},
		{args: "lss", code: CodeUsage, stderr: "\"lss\"; is it ls?\n"},
		{args: "create /no/parent x", environ: environ, code: CodeNoNode, stderr: "--parents"},
		{args: "create --sequential --container /x", environ: environ, code: CodeUsage, stderr: "sequential"},
		{args: "ls / --auth secret", environ: environ, code: CodeUsage, stderr: "scheme:credentials"},
		{args: "ls / --sasl-user alice", environ: environ, code: CodeUsage, stderr: "CURATOR_SASL_PASSWORD"},
		{
			args: "ls / --connect 127.0.0.1:1 --connect-timeout 100ms", code: CodeNotAcquired,
			stderr: "not connected to 127.0.0.1:1 within 100ms",
		},
	} {
		got := invoke(t.Context(), strings.Fields(test.args), test.environ...)
		if got.code != test.code || !strings.Contains(got.stderr, test.stderr) || strings.Contains(got.stderr, "secret") {
			t.Errorf("%s: %+v, want code %d and %q", test.args, got, test.code, test.stderr)
		}
		if strings.HasPrefix(got.stderr, "curator: curator: ") {
			t.Errorf("%s: the name is there twice: %q", test.args, got.stderr)
		}
		if (test.code != CodeOK) != (strings.Count(got.stderr, "\n") == 1) {
			t.Errorf("%s: the error is not one line: %q", test.args, got.stderr)
		}
	}
}

func TestLoginBySASL(t *testing.T) {
	server := curatortest.NewServerT(t, curatortest.WithSASLUsers(map[string]string{"alice": "wonder"}),
		curatortest.WithRequiredAuth("sasl"))
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	testclient.Must(t, os.WriteFile(password, []byte("wonder\n"), 0o600))
	jaas := filepath.Join(dir, "jaas.conf")
	testclient.Must(t, os.WriteFile(jaas, []byte(`Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required username="alice" password="wonder";
};`), 0o600))
	connect := []string{"CURATOR_CONNECT=" + server.ConnectString()}
	for _, test := range []struct {
		args, environ string
		code          int
	}{
		{args: "--sasl-user alice --sasl-password-file " + password},
		{args: "--sasl-user alice", environ: "CURATOR_SASL_PASSWORD=wonder"},
		{args: "--jaas " + jaas},
		{args: "--sasl-user alice", environ: "CURATOR_SASL_PASSWORD=wrong", code: CodeRefused},
		{code: CodeRefused},
		{args: "--sasl-user alice --jaas " + jaas, code: CodeUsage},
	} {
		got := invoke(t.Context(), append([]string{"ls", "/"}, strings.Fields(test.args)...), append(connect,
			test.environ)...)
		if got.code != test.code || strings.Contains(got.stderr, "wonder") {
			t.Errorf("%s %s: %+v, want code %d", test.args, test.environ, got, test.code)
		}
	}
}

func TestGetRefusedByACL(t *testing.T) {
	environ, connect := connected(t)
	owner := testclient.Connect(t, connect)
	testclient.Must(t, owner.AddAuth("digest", []byte("alice:wonder")))
	_, err := owner.Create().WithACL(zk.AuthACL(zk.PermAll)...).ForPath(t.Context(), "/mine", []byte("x"))
	testclient.Must(t, err)
	if got := invoke(t.Context(), []string{"get", "/mine"}, environ...); got.code != CodeRefused {
		t.Errorf("without credentials: %+v, want code %d", got, CodeRefused)
	}
	for _, got := range []result{
		invoke(t.Context(), []string{"get", "/mine", "--auth", "digest:alice:wonder"}, environ...),
		invoke(t.Context(), []string{"get", "/mine"}, append(environ, "CURATOR_AUTH=digest:alice:wonder")...),
	} {
		if got.code != CodeOK || got.stdout != "x" {
			t.Errorf("with credentials: %+v", got)
		}
	}
}

// TestHelpIsShort holds the help of a subcommand to its own flags, and every subcommand that is shown to a title.
func TestHelpIsShort(t *testing.T) {
	got := invoke(t.Context(), []string{"help", "ls"})
	if strings.Contains(got.stdout, "--tls-ca") || !strings.Contains(got.stdout, "--long") ||
		!strings.Contains(got.stdout, `Use "curator help" for the flags about the servers`) {
		t.Errorf("help ls:\n%s", got.stdout)
	}
	for _, name := range []string{"lock", "semaphore", "elect"} { // flags behind the -- are those of the command
		got := invoke(t.Context(), []string{"help", name})
		if !strings.Contains(got.stdout, "\n  curator "+name+" [flags] ") || strings.Count(got.stdout, "[flags]") != 1 {
			t.Errorf("help %s:\n%s", name, got.stdout)
		}
	}
	got = invoke(t.Context(), []string{"help"})
	titled, others, _ := strings.Cut(got.stdout, "Additional Commands:")
	others, flags, _ := strings.Cut(others, "Flags:")
	var names []string
	for line := range strings.Lines(others) {
		if fields := strings.Fields(line); len(fields) > 0 {
			names = append(names, fields[0])
		}
	}
	if want := []string{"version", "man", "help", "completion"}; !slices.Equal(names, want) {
		t.Errorf("without a title: %q, want %q", names, want)
	}
	if !strings.Contains(titled, "Look at nodes:\n  ls ") || !strings.Contains(flags, "--tls-ca") {
		t.Errorf("help:\n%s", got.stdout)
	}
}
