package sasl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const jaas = `// of the deployment
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  user_super="admin" user_bob="other";
};
/* the client's
   own */ Client {
  org.apache.zookeeper.server.auth.DigestLoginModule REQUIRED
  username="bob"
  password="a{b};c=d//e \p";
  com.sun.security.auth.module.Krb5LoginModule optional useKeyTab=false;
};
Kerberos {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true keyTab="/etc/zk.keytab" storeKey=true
  useTicketCache=FALSE principal="alice/host@EXAMPLE.TEST";
};
Home { m required keyTab="${user.home}/k"; };
Twice { m required; }; Twice { m required; };
`

func TestFromJAAS(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jaas.conf")
	if err := os.WriteFile(file, []byte(jaas), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := FromJAAS(file, "")
	if err != nil {
		t.Fatal(err)
	}
	if user, password, ok := l.Password(); user != "bob" || password != "a{b};c=d//e p" || !ok {
		t.Errorf("user %q, password %q, %v", user, password, ok)
	}
	if l, err = FromJAAS(file, "Kerberos"); err != nil {
		t.Fatal(err)
	}
	keytab, ok := l.Option("keyTab")
	if keytab != "/etc/zk.keytab" || !ok || !l.IsOn("useKeyTab") || l.IsOn("useTicketCache") || l.IsOn("none") ||
		l.Module() != "com.sun.security.auth.module.Krb5LoginModule" {
		t.Errorf("%q %v %s", keytab, ok, l.Module())
	}
	if _, _, ok := l.Password(); ok {
		t.Error("Kerberos has a user name and a password")
	}
	if _, err = FromJAAS(file+"x", ""); !os.IsNotExist(err) && !strings.Contains(err.Error(), "jaas.confx") {
		t.Errorf("no file: %v", err)
	}
	for section, wrong := range map[string]string{
		"Nobody": `no section "Nobody"`, "Home": "system property", "Twice": "twice",
	} {
		if _, err := FromJAAS(file, section); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", section, err)
		}
	}
}

func TestJAASFilesThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]string{
		"":                                      "no section",
		"Client":                                "line 1: it ends too early",
		"Client {\n":                            "line 2: it ends too early",
		"Client {\n};":                          "line 2: a section without a module",
		"Client {\n m required\n a=hidden\n};":  "line 4: the name of an option is missing",
		"Client {\n m required\n a hidden;\n};": "line 3: = is missing",
		"Client {\n m required\n a=;\n};":       "line 3: the value of an option is missing",
		"Client {\n m hidden a=b;\n};":          "line 2: the flag of a module",
		"Client {\n m required a=b;\n}\nServer {": "line 4: ; is missing",
		"Client {\n m required a=\"hidden\n\";};": "line 2: a quote",
		"Client { /* hidden":                      "line 1: a comment",
		"{ m required; };":                        "line 1: the name of a section is missing",
	} {
		if l, err := parseJAAS(text, "Client"); err == nil || !strings.HasPrefix(err.Error(), wrong) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v, %v", text, l, err)
		}
	}
}

func TestLoginShowsNoSecret(t *testing.T) {
	t.Parallel()
	l, err := parseJAAS(jaas, "Client")
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []any{l, &l, struct{ L Login }{l}, struct{ l Login }{l}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "a{b}") || i < 3 && !strings.Contains(got, "Client") {
				t.Errorf("%s of %T is %s", verb, v, got)
			}
		}
	}
}

// Java reads the escapes of a quoted value: the words on the right are what its Configuration has for those on the
// left.
func TestJAASEscapes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"b\"ob"`: `b"ob`, `"a\\b"`: `a\b`, `"a\tb\n\r\f\v\a\b"`: "a\tb\n\r\f\v\a\b", `"\q\;"`: "q;", `"\\"`: `\`,
		`"\101x\0"`: "Ax\x00", `"\377\477"`: "ÿ'7", `"\18"`: "\x018", `"zoë\ë"`: "zoëë", `a\b`: `a\b`,
	} {
		l, err := parseJAAS("Client { m required password="+text+" b=c; };", "")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, _ := l.Option("password"); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{`"hidden\"`, `"hidden\`, "\"hidden\\\n\"", `"\`} {
		if _, err := parseJAAS("Client { m required password="+text+"; };", ""); err == nil ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzJAAS(f *testing.F) {
	f.Add(jaas, "Client")
	f.Add("Client { m required a=b; };", "")
	f.Fuzz(func(t *testing.T, text, section string) {
		l, err := parseJAAS(text, section)
		if (err == nil) != (l.module != "" || l.options != nil) {
			t.Errorf("%v, %v", l, err)
		}
	})
}
