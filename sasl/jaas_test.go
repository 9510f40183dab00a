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
		"Client { };\nServer { m required; };":    "line 1: a section without a module",
		"Client { \"\" required; };":              "line 1: a section without a module",
		"Client {\r'm' required; };":              "line 2: single quotes",
		"Client {\r\n m 'required'; };":           "line 2: single quotes",
		"Client {\n\r m required 'hidden'=b; };":  "line 3: single quotes",
		"Client { m required a=b/hidden; };":      "line 1: it ends too early",
		"Client { m required a=b\n/\n; };\n};":    "line 4: the name of an option is missing",
		"Client { m required a=\"${}\"; };":       `"Client": a value with a system property`,
	} {
		if l, err := parseJAAS(text, "Client"); err == nil || !strings.HasPrefix(err.Error(), wrong) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v, %v", text, l, err)
		}
	}
}

// Java reads these files, and has bob's password in them: the parser of its Configuration allows more than its
// documentation says.
func TestFilesThatJavaReads(t *testing.T) {
	t.Parallel()
	const client = `Client { m required password="secret"; };`
	for name, text := range map[string]string{
		"empty section before":              "Server { };\n" + client,
		"empty section behind":              client + "Server{};",
		"empty sections of one name":        "Server { };" + client + "KafkaClient { };",
		"comment behind one slash":          "/ of the deployment\n" + client,
		"slash in a word":                   "Client { m required password=secret/hidden;\n; };",
		"slash between tokens":              "Client / }\n{ m /d }\nrequired / ;\npassword / =\n= secret; };",
		"slash at the end of a line":        "/\nClient { hidden\n" + client,
		"slash at the end of a line, CR":    "/\rClient { hidden\r" + client,
		"slash at the end of a line, CR LF": "/\r\n" + client,
		"slash at the end":                  client + "/",
		"lines that end with CR":            "// of the deployment\r" + client + "\r//\r",
		"comment that begins with /*/":      "/*/ Client { */" + client,
		"comment without end":               client + "/* of the deployment",
		"white space":                       "Client\v{\f m\x01 required password=\"secret\"\x00; };",
		"quote up to the end of a line":     "Client { m required password=\"secret\n; };",
		"quote up to a CR":                  "Client { m required password=\"secret\r; };",
		"name in single quotes":             `'Client' { m required password="secret"; };`,
		"name in quotes":                    `"Client" { "m" "Required" "password"="secret"; };`,
		"option that is there twice":        "Client { m required password=x password=secret; };",
		"property of another section":       `Client { m required password=secret; n optional password="${user.home}"; };`,
	} {
		l, err := parseJAAS(text, "")
		if password, _ := l.Option("password"); err != nil || l.Module() != "m" || password != "secret" {
			t.Errorf("%s: %v, password %q, error %v", name, l, password, err)
		}
	}
	for value, want := range map[string]string{
		"${/}etc${/}": "/etc/", "${{user.home}}": "${{user.home}}", "${{a} b": "${{a} b", "a${b": "a${b", "$a${": "$a${",
		"a}${/}}": "a}/}", "${{a}}${/}": "${{a}}/",
	} {
		l, err := parseJAAS(`Client { m required a="`+value+`"; };`, "")
		if got, _ := l.Option("a"); err != nil || got != want {
			t.Errorf("%s is %q, error %v; want %q", value, got, err, want)
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
	for _, text := range []string{`"hidden\"`, `"hidden\`, `"\`, `'hidden'`} {
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
