//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// patience is how long a new user looks at the demo before it has shown what it is good for.
const patience = 10 * time.Second

const demoFirstLine = "curator demo: three hosts share their work through 3 ZooKeeper servers in memory"

// inTime fails if fn takes longer than a new user looks, plus what the machine is late meanwhile.
func inTime(t *testing.T, fn func()) {
	t.Helper()
	const tick = 5 * time.Millisecond
	stop, late := make(chan struct{}), make(chan time.Duration)
	go func() {
		var sum time.Duration
		for {
			begun := time.Now()
			select {
			case <-stop:
				late <- sum
				return
			case <-time.After(tick):
				sum += time.Since(begun) - tick
			}
		}
	}()
	begun := time.Now()
	defer func() { // also if fn ends the test
		took := time.Since(begun)
		close(stop)
		sum := <-late
		t.Logf("all has been shown after %v; the machine was late by %v", took, sum)
		if took > patience+sum {
			t.Errorf("all has been shown after %v, and the machine was late by %v", took, sum)
		}
	}()
	fn()
}

// typed returns what the demo says is to be typed elsewhere: the line that names the servers, and the commands, of
// which one takes the lock.
func typed(t *testing.T, lines []string) (export, lock string, commands []string) {
	t.Helper()
	for _, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "export "):
			export = line
		case strings.HasPrefix(line, "curator ") && export != "":
			commands = append(commands, line)
		}
	}
	i := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "curator lock ") })
	if export == "" || len(commands) < 5 || i < 0 {
		t.Fatalf("%q is to be typed, after %q, in %q", commands, export, lines)
	}
	lock = commands[i]
	return export, lock, slices.Delete(commands, i, i+1)
}

// requireAnswers types the commands of the demo in another shell: each answers with what it should have.
func requireAnswers(t *testing.T, export string, commands []string) {
	t.Helper()
	wanted := map[string]string{
		"holders": "/demo/locks/orders", "queue": "queue-0", "services": "shop", "watch": "/demo", "tree": "orders",
	}
	for _, command := range commands {
		name := strings.Fields(command)[1]
		want, known := wanted[name]
		if !known {
			t.Errorf("%s is new here", command)
		}
		shell := shellOf(t, export, command)
		var stderr bytes.Buffer
		shell.Stderr = &stderr
		out, err := shell.StdoutPipe()
		testclient.Must(t, err)
		testclient.Must(t, shell.Start())
		found := false
		for lines := bufio.NewScanner(out); !found && lines.Scan(); {
			found = strings.Contains(lines.Text(), want)
		}
		_ = shell.Process.Kill() // it may have ended, or not end
		_ = shell.Wait()
		if !found {
			t.Errorf("%s: no %q; %s", command, want, stderr.String())
		}
	}
}

// shellOf returns another shell where a command of the demo is typed.
func shellOf(t *testing.T, export, command string) *exec.Cmd {
	t.Helper()
	shell := exec.Command("sh", "-c", export+"; exec "+command)
	shell.Env = append(os.Environ(), asProgram, "GORACE=atexit_sleep_ms=0", "PATH="+nameProgram(t))
	return shell
}

func TestDemoShowsWhatHappens(t *testing.T) {
	t.Parallel()
	var line func() string
	var seen []string
	inTime(t, func() {
		line = linesOf(t, "demo")
		// What a new user sees, in any order, and each of these with another host.
		wanted := []string{
			"/demo/leader host-# leads", "/demo/leader host-# no longer leads", "/demo/leader host-# leads",
			"/demo/locks/orders host-# holds", "/demo/locks/orders host-# waits", "/demo/locks/orders host-# no longer holds",
			"/demo/licences host-# holds", "/demo/locks/catalogue host-# reads",
			"/demo/services/shop host-# offers it", "/demo/services/shop host-# no longer offers it",
			"/demo/jobs host-# takes a job", "/demo/jobs host-# has done a job",
		}
		for len(wanted) > 0 {
			seen = append(seen, line())
			words := strings.Fields(seen[len(seen)-1])
			if len(words) < 4 {
				continue
			}
			masked := regexp.MustCompile(`host-\d`).ReplaceAllString(strings.Join(words[1:], " "), "host-#")
			if i := slices.Index(wanted, masked); i >= 0 {
				wanted = slices.Delete(wanted, i, i+1)
			}
		}
	})
	if seen[0] != demoFirstLine {
		t.Errorf("the first line is %q", seen[0])
	}
	for i, text := range seen {
		if len(text) > 80 {
			t.Errorf("line %d is longer than 80 columns: %q", i+1, text)
		}
	}
	if i := slices.IndexFunc(seen, func(s string) bool { return strings.Contains(s, "host-") }); i > 15 {
		t.Errorf("the first event is in line %d", i+1)
	}
	export, lock, commands := typed(t, seen)
	requireAnswers(t, export, commands)
	text, err := shellOf(t, export, lock).CombinedOutput()
	behind := regexp.MustCompile(`^(curator: waiting for /demo/locks/orders behind \S+ \(host-\d, holds for \d+s\)\n)?$`)
	if err != nil || !behind.Match(text) { // it may get the lock at once
		t.Errorf("%s: %v: %s", lock, err, text)
	}
}

// linesOf starts the program as a user does, in a pipe, and returns a function with its next line.
func linesOf(t *testing.T, args ...string) func() string {
	t.Helper()
	path := nameProgram(t)
	self, _, _ := strings.Cut(path, string(filepath.ListSeparator))
	cmd := exec.Command(filepath.Join(self, "curator"), args...)
	cmd.Args[0] = "curator"
	cmd.Env = append(os.Environ(), asProgram, "GORACE=atexit_sleep_ms=0", "PATH="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	testclient.Must(t, err)
	testclient.Must(t, cmd.Start())
	t.Cleanup(func() {
		testclient.Must(t, cmd.Process.Signal(syscall.SIGINT))
		_, _ = io.Copy(io.Discard, out) // what is left
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	})
	lines := bufio.NewScanner(out)
	return func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("%v has ended: %v", args, lines.Err())
		}
		return lines.Text()
	}
}

func TestDemoIsAPictureOnATerminal(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	var term *terminal
	inTime(t, func() {
		term = openTerminal(t, 80, 24, nil, "demo")
		text := term.await(`(?m)^lock /demo/locks/orders .*(holds.*waits|waits.*holds)(?s).*^election /demo/leader .*leads`)
		wants := []string{"host-1 host-2 host-3", "rw lock /demo/locks/catalogue ", "semaphore /demo/licences "}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("no %q on\n%s", want, text)
			}
		}
		first := leads(term.lines())
		term.await(`(?m)^queue /demo/jobs .*works.* \d+ waiting$`)
		term.await(`(?m)^service /demo/services/shop offers offers -$`)
		testenv.Eventually(t, func() bool {
			now := leads(term.lines())
			return now >= 0 && now != first
		}, "another leader")
	})
	lines := term.lines()
	if lines[0] != demoFirstLine || len(lines) != 24 || lines[23] != "q quit" {
		t.Errorf("the screen is\n%s", strings.Join(lines, "\n"))
	}
	if !colors.MatchString(term.tmux("capture-pane", "-p", "-e")) {
		t.Error("no colors")
	}
	export, lock, commands := typed(t, lines)
	shell := shellOf(t, export, lock)
	testclient.Must(t, shell.Start())
	term.await(`(?m)^host-1 host-2 host-3 you(?s:.*)^lock /demo/locks/orders .*holds$`)
	testclient.Must(t, shell.Wait())
	requireAnswers(t, export, commands)
	term.keys("C-c")
	term.requireRestored(CodeOK)
}

// leads returns the column where it says who leads, -1 for nowhere.
func leads(lines []string) int {
	for _, line := range lines {
		if strings.Contains(line, "  election ") {
			return strings.Index(line, "leads")
		}
	}
	return -1
}

func TestDemoFitsATerminal(t *testing.T) {
	testenv.RequireReal(t)
	for _, test := range []struct {
		name, pattern string
		width, height int
		args          []string
	}{
		{"narrow", `(?s)orders (?:holds|waits).*=127\.0\.0\.1:\d+\n.*q quit`, 45, 24, nil},
		{"low", `(?s)orders.*holds.*\nq quit`, 80, 8, nil},
		{"wide", `(?s)orders.*holds.*(\n\d\d:\d\d:\d\d .*){25}\nq quit`, 150, 50, nil},
		{"many servers", `(?s)5 ZooKeeper servers.*CURATOR_CONNECT=\S+,\S+,\S+\n.*q quit`, 80, 24, []string{"--servers=5"}},
		{"one server", `(?s)a ZooKeeper server in memory\n.*q quit`, 80, 24, []string{"--servers=1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			term := openTerminal(t, test.width, test.height, []string{"NO_COLOR=1"}, append([]string{"demo"}, test.args...)...)
			written := term.record()
			term.await(test.pattern)
			term.resize(80, 24)
			term.await(`(?s)^curator demo:.*(.*\n){22}q quit`)
			term.keys("q")
			term.requireRestored(CodeOK)
			if bytes := written(); colors.MatchString(bytes) {
				t.Errorf("colors in what was written: %q", colors.FindAllString(bytes, -1))
			}
		})
	}
}

func TestDemoHasLinesOfJSON(t *testing.T) {
	line, _ := following(t, strings.Fields("demo -o json --servers 1"))
	var r ready
	testclient.Must(t, json.Unmarshal([]byte(line()), &r))
	if !r.Ready || r.Connect == "" || strings.Contains(r.Connect, ",") {
		t.Errorf("the first line: %+v", r)
	}
	var h holder
	testclient.Must(t, json.Unmarshal([]byte(line()), &h))
	if h.Change != "added" || h.Recipe == "" {
		t.Errorf("the second line: %+v", h)
	}
}

func TestDemoEndsInTime(t *testing.T) {
	got := invoke(t.Context(), strings.Fields("demo --quiet --for 300ms"))
	if got.code != CodeOK || got.stderr != "" {
		t.Errorf("demo: %+v", got)
	}
	if got := invoke(t.Context(), strings.Fields("demo --servers 0")); got.code != CodeUsage {
		t.Errorf("demo without servers: %+v", got)
	}
}
