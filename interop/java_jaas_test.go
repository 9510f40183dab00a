package interop_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/sasl"
)

// jaasSource prints what Java's Configuration reads from JAAS files, a line for each: the number of modules in the
// section Client, the class of the first one, and its option password, all in hex.
const jaasSource = `
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.URIParameter;
import java.util.Scanner;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

public class ReadJAAS {
    public static void main(String[] files) throws Exception {
        Scanner names = new Scanner(System.in);
        while (names.hasNextLine()) {
            System.out.println(read(Path.of(names.nextLine()).toUri()));
        }
    }

    static String read(URI file) {
        AppConfigurationEntry[] modules;
        try {
            modules = Configuration.getInstance("JavaLoginConfig", new URIParameter(file))
                .getAppConfigurationEntry("Client");
        } catch (Exception e) {
            return "refused";
        }
        if (modules == null) {
            return "none";
        }
        Object password = modules[0].getOptions().get("password");
        return "read " + hex(modules[0].getLoginModuleName())
            + " " + (password == null ? "-" : hex(password.toString()));
    }

    static String hex(String s) {
        StringBuilder b = new StringBuilder("x");
        for (byte c : s.getBytes(StandardCharsets.UTF_8)) {
            b.append(String.format("%02x", c));
        }
        return b.toString();
    }
}
`

// jaasPieces are what random JAAS files are made of.
var jaasPieces = []string{
	"Client { m required password=secret; };", "Server { };", "Server { m required; };", "Client {", "};", "}", ";", "{",
	"=", "m", "required", "optional", "password", `password="a b"`, "password=b", "user=c", "'Client'", `"Client"`, `"`,
	"'", "/", "//", "/*", "*/", "/*/", "*", "\n", "\r", "\r\n", " ", "\t", "\f", "\\", `\"`, `\n`, `\101`, "${/}",
	"${{", "}}", "${", "é", "€", "x-y_z.$*",
}

// jaasFile returns a random file: a valid one with some pieces in random places.
func jaasFile(r *rand.Rand) string {
	tokens := []string{
		"Server", " ", "{", " ", "m", " ", "required", " ", "a", "=", `"b"`, ";", "}", ";", "\n",
		"Client", " ", "{", "\n", "m", " ", "required", " ", "password", "=", `"se`, "cret", `"`, "\n", ";", "\n", "}",
		";", "\n",
	}
	for range 1 + r.IntN(3) {
		at := r.IntN(len(tokens) + 1)
		with := []string{jaasPieces[r.IntN(len(jaasPieces))]}
		tokens = append(tokens[:at:at], append(with, tokens[min(at+r.IntN(2), len(tokens)):]...)...)
	}
	return strings.Join(tokens, "")
}

// TestJAASFilesHaveTheMeaningOfJava compares what both sides read from random files. Files that Java refuses may be
// read here: characters as @ in unquoted words.
func TestJAASFilesHaveTheMeaningOfJava(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var names, texts []string
	for i := range 3000 {
		name, text := filepath.Join(dir, fmt.Sprint(i)), jaasFile(r)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, name), append(texts, text)
	}
	ctx := testenv.Context(t)
	classes, err := interop.Compile(ctx, interop.Program{Class: "ReadJAAS", Source: []byte(jaasSource)})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "java", "-XX:TieredStopAtLevel=1", "-cp", classes, "ReadJAAS")
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(names) {
		t.Fatalf("%d lines", len(lines))
	}
	read := 0
	for i, want := range lines {
		if want == "refused" {
			continue
		}
		got := "none"
		login, err := sasl.FromJAAS(names[i], "Client")
		if err == nil {
			got = "read " + hexOfText(login.Module()) + " -"
			if password, ok := login.Option("password"); ok {
				got = "read " + hexOfText(login.Module()) + " " + hexOfText(password)
			}
			read++
		}
		if err != nil && strings.Contains(err.Error(), "the name of a section is missing") {
			continue // Java takes any sign for a name
		}
		if got != want {
			t.Errorf("seed %d: %q is %s, in Java %s (%v)", seed, texts[i], got, want, err)
		}
	}
	if read < 100 {
		t.Errorf("seed %d: only %d files were read", seed, read)
	}
}

func hexOfText(s string) string { return "x" + hex.EncodeToString([]byte(s)) }
